#include "core/series_text.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/text_hash.hpp"

namespace vramtrack {
namespace {

template <class T>
bool parse_whole(std::string_view text, T& into) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), into);
  return ec == std::errc{} && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::string series_key_text(const SeriesKey& key) {
  std::string out(to_string(key.metric));
  if (!key.host.empty()) out += '@' + key.host;
  out += '/' + key.device_id;
  if (!is_of_device(key.metric)) out += fmt::format("/{}/{}", key.pid, key.pid_start_ticks);
  return out;
}

std::optional<SeriesKey> parse_series_key(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view of = text.substr(0, slash);
  const std::size_t at = of.find('@');
  const auto metric = parse_metric(of.substr(0, at));
  if (!metric || at == of.size() - 1) return std::nullopt;
  SeriesKey key;
  key.metric = *metric;
  if (at != std::string_view::npos) key.host = std::string(of.substr(at + 1));
  text.remove_prefix(slash + 1);
  if (!is_of_device(*metric)) {
    const std::size_t ticks = text.rfind('/');
    if (ticks == std::string_view::npos || ticks == 0) return std::nullopt;
    const std::size_t pid = text.rfind('/', ticks - 1);
    if (pid == std::string_view::npos || !parse_whole(text.substr(ticks + 1), key.pid_start_ticks) ||
        !parse_whole(text.substr(pid + 1, ticks - pid - 1), key.pid))
      return std::nullopt;
    text = text.substr(0, pid);
  }
  if (text.empty()) return std::nullopt;
  key.device_id = std::string(text);
  return key;
}

std::string alert_id(const SeriesKey& key, Timestamp raised) {
  return text_hash(series_key_text(key) + '@' + std::to_string(raised.time_since_epoch().count()));
}

}  // namespace vramtrack

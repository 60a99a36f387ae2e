// How series, alerts and instants are named in URLs and in JSON.
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "core/text_hash.hpp"
#include "report/view_json.hpp"

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

std::string exact_time(Timestamp time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day ymd{day};
  const auto s = (second - day).count();
  std::string out =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(ymd.year()),
                  static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()), s / 3600, s / 60 % 60, s % 60);
  // Of the earliest second, only the later part can be counted in nanoseconds.
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  if (const auto ns = (time.time_since_epoch().count() % kSecondNs + kSecondNs) % kSecondNs; ns != 0) {
    out += fmt::format(".{:09}", ns);
    out.erase(out.find_last_not_of('0') + 1);
  }
  return out + 'Z';
}

std::optional<Timestamp> parse_exact_time(std::string_view text) {
  // 2026-01-02T03:04:05[.123456789]Z
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kForm.size() + 1 || text.size() > kForm.size() + 11 || text.back() != 'Z') return std::nullopt;
  std::array<int, 6> parts{};
  std::size_t part = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != 'd') {
      if (text[i] != kForm[i]) return std::nullopt;
      ++part;
    } else {
      if (text[i] < '0' || text[i] > '9') return std::nullopt;
      parts[part] = parts[part] * 10 + (text[i] - '0');
    }
  }
  const std::chrono::year_month_day ymd{std::chrono::year{parts[0]},
                                        std::chrono::month{static_cast<unsigned>(parts[1])},
                                        std::chrono::day{static_cast<unsigned>(parts[2])}};
  if (!ymd.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 59) return std::nullopt;
  if (parts[0] < 1678 || parts[0] > 2261) return std::nullopt;  // the range of 64 bits of nanoseconds
  std::string_view rest = text.substr(kForm.size(), text.size() - kForm.size() - 1);
  std::int64_t ns = 0;
  if (!rest.empty()) {
    if (rest.front() != '.' || rest.size() < 2) return std::nullopt;
    rest.remove_prefix(1);
    for (std::size_t i = 0; i < 9; ++i) {
      if (i < rest.size() && (rest[i] < '0' || rest[i] > '9')) return std::nullopt;
      ns = ns * 10 + (i < rest.size() ? rest[i] - '0' : 0);
    }
  }
  return Timestamp{std::chrono::sys_days{ymd}} + std::chrono::hours{parts[3]} + std::chrono::minutes{parts[4]} +
         std::chrono::seconds{parts[5]} + std::chrono::nanoseconds{ns};
}

}  // namespace vramtrack

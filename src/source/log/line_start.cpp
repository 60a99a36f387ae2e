#include "source/log/line_start.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "source/log/labels.hpp"
#include "source/log/stamp.hpp"
#include "source/log/stamp_search.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_alpha;
using logtext::is_digit;

/// A time takes the letters behind it for the name of a zone, as in "10:00:15 Free memory: 5 GB".
std::string_view without_memory_word(std::string_view stamp) {
  std::size_t end = stamp.size();
  while (end > 0 && is_letter(stamp[end - 1])) --end;
  return meaning_of(stamp.substr(end)) == Meaning::none ? stamp : logtext::trim(stamp.substr(0, end));
}

/// Whether `name` looks like that of a host or a pod, as pdsh and clush put it before each line: "node-07", "gpu3".
bool is_host(std::string_view name) {
  if (name.size() > 64 || !is_alpha(name.front())) return false;
  bool has_sign = false;
  for (const char c : name) {
    if (!is_alpha(c) && !is_digit(c) && c != '-' && c != '.' && c != '_') return false;
    has_sign |= is_digit(c) || c == '-';
  }
  std::vector<Word> words;
  cut_words(name, words);
  // "step-3: ", "gpu_mem_mb: " and "train-loss: " are about the message.
  return has_sign && std::all_of(words.begin(), words.end(), [](const Word& word) {
           return word.meaning == Meaning::none || word.meaning == Meaning::gpu;
         });
}

/// The prefix that docker compose, kubectl logs --prefix or srun --label put before the message.
std::string_view line_prefix(std::string_view line) {
  if (line.starts_with("[pod/")) {
    const std::size_t end = line.find(']');
    return end == std::string_view::npos ? std::string_view{} : line.substr(5, end - 5);
  }
  const std::size_t bar = line.find(" | ");
  if (bar != std::string_view::npos && bar > 0 && bar < 64) {
    const std::string_view name = logtext::trim(line.substr(0, bar));
    if (!name.empty() && is_alpha(name.front()) && name.find_first_of(" :=%") == std::string_view::npos) return name;
  }
  const std::string_view rest = logtext::trim(line);
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) ++digits;
  if (digits > 0 && digits <= 4 && rest.substr(digits).starts_with(": ")) return rest.substr(0, digits);
  const std::string_view name = rest.substr(0, std::min(rest.find(": "), rest.size()));
  return name.size() < rest.size() && is_host(name) ? name : std::string_view{};
}

/// `line` without its prefix and without what stands between that and the message: "|", "]", ":".
std::string_view message_of(std::string_view line, std::string_view prefix) {
  if (!prefix.empty()) line.remove_prefix(static_cast<std::size_t>(prefix.data() + prefix.size() - line.data()));
  line.remove_prefix(std::min(line.find_first_not_of(" \t|:[](\"'"), line.size()));
  return line;
}

/// `line` behind what Python's logging ("INFO:trainer:") or syslog ("node7 python[4242]:") put before the message.
std::string_view behind_header(std::string_view line) {
  for (const std::string_view level : {"DEBUG:", "INFO:", "WARNING:", "ERROR:", "CRITICAL:"}) {
    if (!line.starts_with(level)) continue;
    const std::size_t name_end = line.find_first_of(": ", level.size());
    if (name_end != std::string_view::npos && line[name_end] == ':') return line.substr(name_end + 1);
  }
  const std::size_t pid = line.find('[');
  if (pid == std::string_view::npos ||
      std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(pid), ' ') != 1)
    return line;
  const std::size_t pid_end = line.find_first_not_of("0123456789", pid + 1);
  if (pid_end == std::string_view::npos || pid_end == pid + 1 || !line.substr(pid_end).starts_with("]: ")) return line;
  return line.substr(pid_end + 3);
}

/// "10:05", "9:05 PM" or "9:05pm" with which `line` begins, behind its prefix and in brackets or not.
std::string_view leading_minute(std::string_view line, std::string_view prefix, bool& by_value) {
  line = message_of(line, prefix);
  std::size_t digits = 0;
  while (digits < line.size() && is_digit(line[digits])) ++digits;
  if (digits == 0 || digits > 2 || line.substr(digits, 1) != ":") return {};
  by_value = true;
  Civil civil;
  if (!read_civil(line, DateOrder::month_first, civil) || !civil.has_time || civil.has_date) return {};
  std::size_t end = digits + 3;
  if (line.size() < end) return {};
  const auto ends = [&](std::size_t at) {
    return line.size() == at || std::string_view(" \t,;|])\"'").find(line[at]) != std::string_view::npos;
  };
  const std::size_t space = line.substr(end).starts_with(' ') ? 1 : 0;
  const std::string_view half = line.substr(end + space, 2);
  if ((logtext::same_letters(half, "am") || logtext::same_letters(half, "pm")) && ends(end + space + 2))
    end += space + 2;
  if (!ends(end)) return {};
  return line.substr(0, end);
}

}  // namespace

LineStart read_line_start(std::string_view line) {
  LineStart out;
  out.stamp = without_memory_word(find_stamp(line, &out.by_value));
  out.prefix = line_prefix(line);
  // Seconds since 1970 are a time only where the message begins: elsewhere they may be any number.
  if (const std::string_view message = behind_header(message_of(line, out.prefix));
      out.stamp.empty() && message.size() < line.size())
    out.stamp = without_memory_word(find_stamp(message, &out.by_value));
  if (out.stamp.empty()) out.minute = leading_minute(line, out.prefix, out.by_value);
  if (!out.stamp.empty() || !out.minute.empty()) return out;
  if (!out.prefix.empty())
    line.remove_prefix(static_cast<std::size_t>(out.prefix.data() + out.prefix.size() - line.data()));
  out.elapsed = find_elapsed(line);
  return out;
}

}  // namespace vramtrack

// How instants are written in URLs and in JSON.
#include <fmt/format.h>

#include <array>

#include "report/view_json.hpp"

namespace vramtrack {
std::string exact_time(Timestamp time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day ymd{day};
  const auto s = (second - day).count();
  std::string out =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(ymd.year()),
                  static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()), s / 3600, s / 60 % 60, s % 60);
  // In the earliest second, only the later part is representable in nanoseconds.
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
  if (parts[0] < 1678 || parts[0] > 2261) return std::nullopt;  // the range of 64-bit nanoseconds
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

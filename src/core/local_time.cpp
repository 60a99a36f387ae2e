#include "core/local_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <optional>

namespace vramtrack {
namespace {

thread_local bool t_is_local = false;

/// The first moment that was written, in seconds: its offset is the one that is named.
constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kNamed = kNone + 1;
std::atomic<std::int64_t> g_written_s{kNone};

std::int64_t seconds_of(Timestamp time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

std::tm civil_at(std::int64_t utc_s) {
  const auto at = static_cast<std::time_t>(utc_s);
  std::tm out{};
  if (t_is_local)
    ::localtime_r(&at, &out);
  else
    ::gmtime_r(&at, &out);
  return out;
}

std::string written(const std::tm& at, char between) {
  return fmt::format("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday, between,
                     at.tm_hour, at.tm_min, at.tm_sec);
}

}  // namespace

LocalTimes::LocalTimes(bool on) : was_(t_is_local) {
  t_is_local = on || was_;
}

LocalTimes::~LocalTimes() {
  t_is_local = was_;
}

bool writes_local_times() {
  return t_is_local;
}

std::string clock_time(Timestamp time) {
  return written(civil_at(seconds_of(time)), 'T');
}

std::string zone_name(Timestamp time) {
  if (!t_is_local) return "UTC";
  g_written_s = kNamed;
  return civil_at(seconds_of(time)).tm_zone;
}

double zone_offset_s(Timestamp time) {
  return t_is_local ? static_cast<double>(civil_at(seconds_of(time)).tm_gmtoff) : 0;
}

std::string local_moment(Timestamp time) {
  const std::int64_t utc_s = seconds_of(time);
  std::int64_t none = kNone;
  g_written_s.compare_exchange_strong(none, utc_s);
  return written(civil_at(utc_s), ' ');
}

std::string unnamed_zone() {
  std::int64_t utc_s = g_written_s.load();
  if (utc_s == kNone || utc_s == kNamed || !g_written_s.compare_exchange_strong(utc_s, kNamed)) return {};
  const LocalTimes local(true);
  const std::tm at = civil_at(utc_s);
  const long minutes = std::labs(at.tm_gmtoff) / 60;
  if (minutes == 0) return "times are UTC";
  const std::string offset = fmt::format("UTC{}{:02}:{:02}", at.tm_gmtoff < 0 ? '-' : '+', minutes / 60, minutes % 60);
  return fmt::format("times are local, {} ({})", at.tm_zone, offset);
}

}  // namespace vramtrack

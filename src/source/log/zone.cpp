#include "source/log/zone.hpp"

#include <date/tz.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

namespace vramtrack {
namespace {

/// Keeps sums of zone limits (which may be the ends of time) inside 64 bits.
constexpr std::int64_t kFar = 400'000'000'000;

/// nullptr when the zone is not known or there is no zone database; date's API tells both by throwing.
const date::time_zone* find_zone(const std::string& name) {
  try {
    return date::locate_zone(name);
  } catch (const std::exception&) {
    return nullptr;
  }
}

const date::time_zone* machine_zone() {
  try {
    return date::current_zone();
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

Result<Zone> Zone::open(const std::string& name) {
  Zone zone;
  if (name.empty()) {
    const char* tz = std::getenv("TZ");
    if (tz != nullptr && *tz != '\0') zone.zone_ = find_zone(*tz == ':' ? tz + 1 : tz);
    if (zone.zone_ == nullptr) zone.zone_ = machine_zone();
  } else if (name != "UTC" && name != "Z") {
    zone.zone_ = find_zone(name);
    if (zone.zone_ == nullptr)
      return fail(
          fmt::format("time zone '{}' is not known here; give an IANA name such as Europe/Berlin or UTC (package "
                      "tzdata lists them)",
                      name));
  }
  if (zone.zone_ != nullptr) {
    zone.name_ = zone.zone_->name();
  } else {
    zone.safe_from_s_ = -kFar;
    zone.safe_until_s_ = kFar;
  }
  return zone;
}

std::int64_t Zone::look_up(std::int64_t local_s, std::int64_t not_before_s) {
  if (zone_ == nullptr) return local_s;
  constexpr std::int64_t kDay = 86'400;
  constexpr std::int64_t kTolerance = 60;
  try {
    const date::local_info info = zone_->get_info(date::local_seconds{std::chrono::seconds{local_s}});
    const std::int64_t first = info.first.offset.count();
    if (info.result == date::local_info::ambiguous) {
      const std::int64_t earlier = local_s - first;
      return earlier >= not_before_s - kTolerance ? earlier : local_s - info.second.offset.count();
    }
    if (info.result == date::local_info::unique) {
      const std::int64_t begin = info.first.begin.time_since_epoch().count();
      const std::int64_t end = info.first.end.time_since_epoch().count();
      offset_s_ = first;
      safe_from_s_ = std::clamp(begin, -kFar, kFar) + first + kDay;
      safe_until_s_ = std::clamp(end, -kFar, kFar) + first - kDay;
    }
    return local_s - first;
  } catch (const std::exception&) {
    return local_s;
  }
}

}  // namespace vramtrack

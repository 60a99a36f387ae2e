#include "core/zone.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "core/tzif.hpp"

namespace vramtrack {

Result<Zone> Zone::open(const std::string& name) {
  Zone zone;
  const auto take = [&zone](Result<TimeZone> found) {
    if (!found) return false;
    zone.name_ = found->name();
    zone.zone_ = std::make_shared<const TimeZone>(std::move(*found));
    return true;
  };
  if (name.empty()) {
    const char* tz = std::getenv("TZ");
    const bool named = tz != nullptr && *tz != '\0' && take(TimeZone::load(*tz == ':' ? tz + 1 : tz));
    if (!named) take(TimeZone::machine());
  } else if (name != "UTC" && name != "Z") {
    auto found = TimeZone::load(name);
    if (!found)
      return fail(fmt::format("time zone '{}': {}; give an IANA name such as Europe/Berlin, or UTC", name,
                              found.error().message));
    take(std::move(found));
  }
  if (zone.zone_ == nullptr) {
    zone.safe_from_s_ = -TimeZone::kFarS;
    zone.safe_until_s_ = TimeZone::kFarS;
  }
  return zone;
}

std::int64_t Zone::look_up(std::int64_t local_s, std::int64_t not_before_s) {
  constexpr std::int64_t kDay = 86'400;  // no offset is larger
  constexpr std::int64_t kTolerance = 60;
  if (zone_ == nullptr || local_s < -TimeZone::kFarS + 2 * kDay || local_s > TimeZone::kFarS - 2 * kDay) return local_s;
  // Each period of constant offset that may contain this wall-clock time, in order.
  std::optional<std::int64_t> first;
  std::optional<std::int64_t> skipped;  // with the offset before a gap that skips this time
  TimeZone::Span before{};
  bool has_before = false;
  for (TimeZone::Span span = zone_->at(local_s - kDay);; span = zone_->at(span.end_s)) {
    const std::int64_t utc_s = local_s - span.offset_s;
    if (utc_s >= span.begin_s && utc_s < span.end_s) {
      if (first) return *first >= not_before_s - kTolerance ? *first : utc_s;
      first = utc_s;
      if (local_s - kDay >= span.begin_s && local_s + kDay < span.end_s) {
        offset_s_ = span.offset_s;
        safe_from_s_ = span.begin_s + span.offset_s + kDay;
        safe_until_s_ = span.end_s + span.offset_s - kDay;
      }
    }
    if (has_before && !skipped && local_s >= before.end_s + before.offset_s && local_s < span.begin_s + span.offset_s)
      skipped = local_s - before.offset_s;
    before = span;
    has_before = true;
    if (span.end_s > local_s + kDay || span.end_s >= TimeZone::kFarS) break;
  }
  if (first) return *first;
  return skipped.value_or(local_s - before.offset_s);
}

}  // namespace vramtrack

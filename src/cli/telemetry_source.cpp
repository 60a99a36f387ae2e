#include "cli/telemetry_source.hpp"

#include <fmt/format.h>

#ifdef VRAMTRACK_HAS_TELEMETRY
#include "telemetry/lifetimes_source.hpp"
#else
#include "cli/no_telemetry.hpp"
#endif

namespace vramtrack::cli {

std::string_view why_no_telemetry() {
  return VRAMTRACK_NO_TELEMETRY;
}

#ifdef VRAMTRACK_HAS_TELEMETRY

std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories> categories) {
  return std::make_unique<telemetry::LifetimesSource>(std::move(categories));
}

#else

std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories>) {
  return std::make_unique<NoTelemetry>(
      fmt::format("this build cannot trace running programs: {}; set telemetry.enabled to false", why_no_telemetry()));
}

#endif

}  // namespace vramtrack::cli

// The program that `make run` builds does not trace running programs.
#include "cli/telemetry_source.hpp"

#include "cli/no_telemetry.hpp"

namespace vramtrack::cli {

std::string_view why_no_telemetry() {
  return "'make run' built it, and 'make build' builds all of it";
}

std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories>) {
  return std::make_unique<NoTelemetry>(
      "this program, which 'make run' built, cannot trace running programs: build all of it with 'make build'");
}

}  // namespace vramtrack::cli

// The source of running programs' allocations, for `watch` and `agent` with telemetry.enabled.
#pragma once

#include <memory>
#include <string_view>

#include "core/traced_categories.hpp"
#include "source/source.hpp"

namespace vramtrack::cli {

/// Each poll returns the error that prevents it, including that this build has no tracer. `categories`, if not null:
/// receives what each process holds, by purpose.
std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories> categories = nullptr);

/// Why this build has no tracer, as a clause about the build; empty if it has one.
std::string_view why_no_telemetry();

}  // namespace vramtrack::cli

// The source of what running programs allocate, for `watch` and `agent` with telemetry.enabled.
#pragma once

#include <memory>
#include <string_view>

#include "core/traced_categories.hpp"
#include "source/source.hpp"

namespace vramtrack::cli {

/// Each of its polls returns the error that prevents it, also that this build has no tracer. `categories`, if not null:
/// where it puts what each process holds by what it is for.
std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories> categories = nullptr);

/// Why this build has no tracer, in a clause about the build; empty: it has one.
std::string_view why_no_telemetry();

}  // namespace vramtrack::cli

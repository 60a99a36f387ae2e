// The source of what running programs allocate, for `watch` and `agent` with telemetry.enabled.
#pragma once

#include <memory>
#include <string_view>

#include "core/traced_categories.hpp"
#include "source/source.hpp"

namespace vramtrack::cli {

/// What hinders it is the error of each of its polls; so is that this build has none. `categories`, if not null: where
/// it puts what each process holds by what it is for.
std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories> categories = nullptr);

/// Why this build has no tracer, in a clause about the build; empty: it has one.
std::string_view why_no_telemetry();

}  // namespace vramtrack::cli

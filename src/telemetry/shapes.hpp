// The bytes of arrays and images, whose functions take a shape instead of a size.
#pragma once

#include <cstdint>

#include "telemetry/events.h"

namespace vramtrack::telemetry {

/// The bytes of an allocation. For arrays and images, only those of the elements, because each driver pads them in its
/// own way. 0: memory is bound to it later, or belongs to another object.
std::uint64_t bytes_of(const telemetry_stack_event& event);

}  // namespace vramtrack::telemetry

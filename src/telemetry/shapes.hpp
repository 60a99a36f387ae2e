// The bytes of arrays and images, whose functions get a shape and no size.
#pragma once

#include <cstdint>

#include "telemetry/events.h"

namespace vramtrack::telemetry {

/// Of an allocation. For arrays and images only the bytes of the elements, since drivers pad them as they like. 0:
/// memory is bound to it later, or it lies in another object's.
std::uint64_t bytes_of(const telemetry_stack_event& event);

}  // namespace vramtrack::telemetry

// Alternating readings of several GPUs that nothing identifies.
#pragma once

#include <cstddef>
#include <span>

namespace vramtrack {

/// How many series alternate in `values`: n if, throughout, the value n rows earlier is many times closer than that of
/// the previous row. 1: a single series, or too few values to say (under 32).
std::size_t count_interleaved(std::span<const double> values);

/// Whether the readings are two series merged by time, each with its own clock: two separate paths through the values
/// are many times shorter than a single one, and the readings of each path are evenly spaced in time, while those of
/// both together are not. `times_s` and `values` are of the same readings, at least 32.
bool are_merged(std::span<const double> times_s, std::span<const double> values);

}  // namespace vramtrack

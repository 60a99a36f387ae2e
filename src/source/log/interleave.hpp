// Readings of several GPUs in turn, which nothing tells apart.
#pragma once

#include <cstddef>
#include <span>

namespace vramtrack {

/// How many series `values` are of in turn: where the value of n rows before is many times as near as that of the row
/// before, throughout. 1: it is one, or too short to tell (under 32 values).
std::size_t count_interleaved(std::span<const double> values);

/// Whether readings are of two series that were merged by time, each with a clock of its own: the values lie on two
/// paths that are many times as short as the one, and readings of each path come at even times, those of both together
/// do not. `times_s` and `values`: of the same readings, at least 32.
bool are_merged(std::span<const double> times_s, std::span<const double> values);

}  // namespace vramtrack

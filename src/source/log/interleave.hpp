// Readings of several GPUs in turn, which nothing tells apart.
#pragma once

#include <cstddef>
#include <span>

namespace vramtrack {

/// How many series `values` are of in turn: where the value of n rows before is many times as near as that of the row
/// before, throughout. 1: it is one, or too short to tell (under 32 values).
std::size_t count_interleaved(std::span<const double> values);

}  // namespace vramtrack

// Reads line numbers from CPython's tables, which may be truncated or invalid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/python_layout.hpp"
#include "probe/unwind_table.hpp"

namespace vramtrack::probe {

/// The line of the instruction at byte `at` of a code object that begins in `first_line`, according to its table of
/// `bytes` bytes at `table`. `first_line` if it is not in the table.
std::uint32_t find_line(ReadMemory read, LineTable kind, std::uint64_t table, std::uint64_t bytes, std::int64_t at,
                        std::int32_t first_line);

}  // namespace vramtrack::probe

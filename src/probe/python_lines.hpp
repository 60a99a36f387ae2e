// Line numbers out of CPython's tables, which may be cut off or nonsense.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/python_layout.hpp"
#include "probe/unwind_table.hpp"

namespace vramtrack::probe {

/// Of the instruction at byte `at` of a code object that begins in `first_line`, by its table of `bytes` bytes at
/// `table`. `first_line` where the table does not say.
std::uint32_t find_line(ReadMemory read, LineTable kind, std::uint64_t table, std::uint64_t bytes, std::int64_t at,
                        std::int32_t first_line);

}  // namespace vramtrack::probe

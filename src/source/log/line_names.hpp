// Which numbers of a line of free text are no amounts of memory: indices of GPUs, pids, counts, and divisors, which say
// in what an amount is given. Private to the reader of free text.
#pragma once

#include "source/log/line_numbers.hpp"
#include "source/log/memory_words.hpp"

namespace vramtrack {

/// Sets LineNumber::use of all numbers of `cut`. Takes out the divisors: the amount behind "memory_allocated() /
/// 1024**3" gets the unit GiB; of "[9000, 4000] MB", both have one. `out` gets the counts, the pid, and the first
/// index. O(bytes).
void name_numbers(CutLine& cut, LineFigures& out);

}  // namespace vramtrack

// FaultMemory: the program's malloc with failures on demand. operator new, SQLite, zstd and zlib take theirs from it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fault_plan.hpp"

namespace vramtrack::testing {

/// Kinds of allocations, as bits: those of the thread that arms the plan, and those of all others.
namespace memory_call {
inline constexpr std::uint32_t own = 1, others = 2;
}  // namespace memory_call

/// The plan of malloc, calloc, realloc and aligned_alloc. Allocations of the calling thread count as `own`.
FaultPlan& memory_plan();
void count_this_thread_as_own();
/// Blocks that are allocated and not given back, of all threads. What a library keeps for the next time counts.
std::int64_t live_blocks();
/// Sanitizers have their own allocator, which cannot be replaced.
bool memory_can_fail();

}  // namespace vramtrack::testing

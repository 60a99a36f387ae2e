// FaultMemory: the program's malloc with failures on demand. operator new, SQLite, zstd and zlib use it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fault_plan.hpp"

namespace vramtrack::testing {

/// Kinds of allocations, as bits: those by the thread that arms the plan, and those by all others.
namespace memory_call {
inline constexpr std::uint32_t own = 1, others = 2;
}  // namespace memory_call

/// The plan for malloc, calloc, realloc and aligned_alloc. Allocations by the calling thread count as `own`.
FaultPlan& memory_plan();
void count_this_thread_as_own();
/// Blocks allocated but not freed, in all threads, including blocks that a library keeps for reuse.
std::int64_t live_blocks();
/// False with sanitizers, which have their own allocator that cannot be replaced.
bool memory_can_fail();

}  // namespace vramtrack::testing

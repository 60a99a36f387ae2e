// FaultIo: the program's calls to the system's files with failures on demand, whichever library makes them.
#pragma once

#include <cstdint>

#include "fault_plan.hpp"

namespace vramtrack::testing {

/// Kinds of calls, as bits. `part` does not fail a read or write: it moves one byte of those that were asked for.
namespace io_call {
inline constexpr std::uint32_t open = 1, read = 2, write = 4, sync = 8, rename = 16, remove = 32, size = 64, stat = 128,
                               lock = 256, folder = 512, seek = 1024, part = 2048, all = 0xffff & ~part;
}  // namespace io_call

/// The plan of the calls of the threads that are watched.
FaultPlan& io_plan();
void watch_this_thread();
void watch_all_threads(bool watch);
/// What a call that fails sets errno to. EIO at first.
void fail_with_errno(int number);
/// Files that are open in this process.
int open_files();
/// Sanitizers stand between the program and the system themselves.
bool io_can_fail();

}  // namespace vramtrack::testing

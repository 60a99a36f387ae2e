// FaultIo: the program's file system calls with failures on demand, whichever library makes them.
#pragma once

#include <cstdint>

#include "fault_plan.hpp"

namespace vramtrack::testing {

/// Kinds of calls, as bits. `part` does not fail a read or write: it transfers only one byte of those requested.
namespace io_call {
inline constexpr std::uint32_t open = 1, read = 2, write = 4, sync = 8, rename = 16, remove = 32, size = 64, stat = 128,
                               lock = 256, folder = 512, seek = 1024, part = 2048, all = 0xffff & ~part;
}  // namespace io_call

/// The plan for calls by the watched threads.
FaultPlan& io_plan();
void watch_this_thread();
void watch_all_threads(bool watch);
/// The errno of a failing call. Initially EIO.
void fail_with_errno(int number);
/// The number of files open in this process.
int open_files();
/// False with sanitizers, which intercept the same calls.
bool io_can_fail();

}  // namespace vramtrack::testing

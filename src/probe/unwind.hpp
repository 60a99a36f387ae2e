// Return addresses of the calling thread. Rules come from .eh_frame and are kept by address, so that a frame costs some
// nanoseconds once it was seen. x86-64 by tables; aarch64 by frame pointers, which its ABI keeps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/unwind_table.hpp"

namespace vramtrack::probe {

/// Not zeroed: arrays of them are on the way of each capture.
struct NativeFrame {
  std::uint64_t address;  ///< where the call returns to
  std::uint32_t module;   ///< see Modules
};

/// Where to begin: the state of a frame as its callee left it.
struct Registers {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
};
/// Of the caller of the function that this is written in.
#define VRAMTRACK_CALLER_REGISTERS()                                      \
  ::vramtrack::probe::Registers {                                         \
    reinterpret_cast<std::uint64_t>(__builtin_return_address(0)),         \
        reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)) + 16, \
        *static_cast<const std::uint64_t*>(__builtin_frame_address(0))    \
  }

/// From `from` outwards, innermost first; at most `most`. Ends at the outermost frame, or where nothing is known of how
/// to go on. Reads the thread's own stack within its limits, and everything else (a signal's or a fiber's stack,
/// tables) so that memory that is gone is no fault. No malloc, no lock of the loader.
std::size_t unwind(Registers from, NativeFrame* into, std::size_t most);

/// In a child after a fork.
void forget_rules();
/// Of the calling thread; not a signal's own stack, or a fiber's.
bool lies_in_own_stack(std::uint64_t address);

}  // namespace vramtrack::probe

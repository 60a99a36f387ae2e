// Finds return addresses of the calling thread. Rules come from .eh_frame and are cached by address, so a known frame
// costs some nanoseconds. x86-64 uses tables; aarch64 uses frame pointers, which its ABI guarantees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/unwind_table.hpp"

namespace vramtrack::probe {

/// One native frame. Not zeroed, because each capture creates arrays of them.
struct NativeFrame {
  std::uint64_t address;  ///< the address to which the call returns
  std::uint32_t module;   ///< see Modules
};

/// The starting point: the state of a frame as its callee left it.
struct Registers {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
};
/// The registers of the caller of the function that contains this.
#define VRAMTRACK_CALLER_REGISTERS()                                      \
  ::vramtrack::probe::Registers {                                         \
    reinterpret_cast<std::uint64_t>(__builtin_return_address(0)),         \
        reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)) + 16, \
        *static_cast<const std::uint64_t*>(__builtin_frame_address(0))    \
  }

/// Unwinds outwards from `from`, innermost first, at most `most` frames. Ends at the outermost frame, or if it is
/// unknown how to continue. Reads the thread's own stack within its limits, and everything else (a signal's or a
/// fiber's stack, tables) so that unmapped memory causes no fault. No malloc, no loader lock.
std::size_t unwind(Registers from, NativeFrame* into, std::size_t most);

/// Call in a child after a fork.
void forget_rules();
/// Whether it is in the calling thread's stack, not in a signal's own stack or a fiber's.
bool lies_in_own_stack(std::uint64_t address);

}  // namespace vramtrack::probe

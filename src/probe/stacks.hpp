// Call stacks of the calling thread: native and Python frames, each distinct stack written once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe {

/// At most this many frames of a stack are written, the innermost ones.
inline constexpr std::size_t kMostNativeFrames = 128;
inline constexpr std::size_t kMostPythonFrames = 256;
/// Distinct stacks per process; further ones have no number.
inline constexpr std::size_t kMostStacks = 196608;

/// The number of the caller's stack, without the probe's own frames; 0: unavailable. A new stack is written to the ring
/// (Record::frame, with the modules, code objects and texts it needs) before its number is returned. Takes neither the
/// GIL nor malloc. `with_native` false: for a thread that runs Python, only its Python frames. Memory: at most 7.6 MiB
/// for the tables, as used.
std::uint32_t capture_stack(bool with_native = true);
/// Captures that returned 0 because of the limit kMostStacks.
std::uint64_t stacks_without_room();
/// Call in a child after a fork, which has another ring: everything must be written again.
void forget_stacks();

}  // namespace vramtrack::probe

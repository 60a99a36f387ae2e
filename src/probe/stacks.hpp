// Call stacks of the calling thread: native and Python frames, each distinct stack written once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe {

/// At most this many frames of a stack are written; of a deeper one, the innermost.
inline constexpr std::size_t kMostNativeFrames = 128;
inline constexpr std::size_t kMostPythonFrames = 256;
/// Distinct stacks of a process; further ones have no number.
inline constexpr std::size_t kMostStacks = 196608;

/// The number of the stack of the caller, without the probe's own frames; 0: none was to be had. A stack that is new is
/// written to the ring (Record::frame, with the modules, code objects and texts it needs) before its number is
/// returned. Takes neither the GIL nor malloc. `with_native` false: a thread that runs Python has its Python frames
/// only. Memory: at most 7.6 MiB for the tables, as it is used.
std::uint32_t capture_stack(bool with_native = true);
/// Captures that returned 0 because kMostStacks were there.
std::uint64_t stacks_without_room();
/// In a child after a fork, where the ring is another: everything has to be written again.
void forget_stacks();

}  // namespace vramtrack::probe

// Python frames of the calling thread, by offsets: without the GIL, without a reference count. The thread is in the
// hooked call, so its frames stand still, and they keep their code objects.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe {

/// Not zeroed: arrays of them are on the way of each capture.
struct PythonFrame {
  std::uint64_t code;  ///< the code object
  std::uint64_t key;   ///< of the code object and what it holds: addresses are used again
  std::int64_t at;     ///< byte in its code
  bool is_entry;       ///< see kEntryFrame
};

/// Innermost first, at most `most`. 0: this thread runs no Python, or its frames are not understood, which is told once
/// as Record::mark with kNotice and the reason ("no Python frames: ..."). The first that has frames is checked as a
/// whole.
std::size_t python_frames(PythonFrame* into, std::size_t most);
/// The number of the frame's code object, which is written (Record::code) when it is new; 0: there is no more room.
std::uint32_t tell_code(const PythonFrame& frame);
std::uint32_t line_of(const PythonFrame& frame);
/// The interpreter is shutting down: what is given back from here on is not the program's doing. false where there is
/// no Python that was understood. Some ns.
bool python_shuts_down();
/// In a child after a fork.
void forget_python();

}  // namespace vramtrack::probe

// Reads Python frames of the calling thread by offsets, without the GIL or reference counts. The thread is in the
// hooked call, so its frames do not change, and they keep their code objects alive.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe {

/// One Python frame. Not zeroed, because each capture creates arrays of them.
struct PythonFrame {
  std::uint64_t code;  ///< the code object
  std::uint64_t key;   ///< a key of the code object and its content, because addresses are reused
  std::int64_t at;     ///< offset in its code, in bytes
  bool is_entry;       ///< see kEntryFrame
};

/// Reads the frames, innermost first, at most `most`. Returns 0 if this thread runs no Python, or if its frames are not
/// understood, which is recorded once as Record::mark with kNotice and the reason ("no Python frames: ..."). The first
/// thread that has frames is checked completely.
std::size_t python_frames(PythonFrame* into, std::size_t most);
/// The number of the frame's code object, which is recorded (Record::code) if it is new; 0: the table is full.
std::uint32_t record_code(const PythonFrame& frame);
std::uint32_t line_of(const PythonFrame& frame);
/// Whether the interpreter is shutting down: memory freed from here on is not freed by the program. False if no known
/// Python was found. Takes some ns.
bool python_shuts_down();
/// Call in a child after a fork.
void forget_python();

}  // namespace vramtrack::probe

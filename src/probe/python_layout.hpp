// The places where each version of CPython keeps the parts of a stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe {

enum class LineTable : std::uint8_t {
  pairs,      ///< 3.8, 3.9: co_lnotab
  ranges,     ///< 3.10: co_linetable, PEP 626
  locations,  ///< 3.11 and newer: co_linetable, PEP 657
};

/// Offsets in bytes.
struct PythonLayout {
  int minor = 0;
  std::uint16_t thread_frame = 0;  ///< PyThreadState: the innermost frame, or its container
  bool is_frame_held = false;      ///< 3.11, 3.12: thread_frame is a _PyCFrame*, and the frame its current_frame
  std::uint16_t held_frame = 0;    ///< _PyCFrame
  std::uint16_t frame_previous = 0;
  std::uint16_t frame_code = 0;      ///< its low bits are a tag since 3.14
  std::uint16_t frame_at = 0;        ///< f_lasti, prev_instr, instr_ptr
  std::uint16_t frame_owner = 0;     ///< 3.12 and newer: 3 and more: a frame of the interpreter itself
  std::uint16_t frame_is_entry = 0;  ///< 3.11 only
  std::uint16_t code_file = 0;
  std::uint16_t code_name = 0;  ///< co_qualname since 3.11, else co_name
  std::uint16_t code_table = 0;
  std::uint16_t code_first_line = 0;
  std::uint16_t code_bytes = 0;  ///< co_code_adaptive; 0: frame_at holds an int
  std::uint16_t ascii_text = 0;  ///< sizeof(PyASCIIObject)
  std::uint16_t other_text = 0;  ///< sizeof(PyCompactUnicodeObject)
  LineTable lines = LineTable::pairs;
};

/// The layout of 3.8 to 3.12, from a table; nullptr if the version is unknown.
const PythonLayout* layout_of(int minor);
/// 3.13 and 3.14 describe themselves. `offsets`: the first `words` words of _PyRuntime. Returns nullptr if they are
/// understood, otherwise the reason why not.
const char* read_layout(const std::uint64_t* offsets, std::size_t words, PythonLayout& into);
inline constexpr std::size_t kDebugOffsetWords = 52;

// The same in all of them (64 bit): PyObject.ob_type, PyBytesObject.ob_size and ob_sval, PyASCIIObject.length and state
// (Include/object.h, cpython/bytesobject.h, cpython/unicodeobject.h).
inline constexpr std::uint64_t kObjectType = 8;
inline constexpr std::uint64_t kBytesSize = 16;
inline constexpr std::uint64_t kBytesText = 32;
inline constexpr std::uint64_t kTextLength = 16;
inline constexpr std::uint64_t kTextState = 32;

}  // namespace vramtrack::probe

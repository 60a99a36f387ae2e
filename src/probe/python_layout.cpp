#include "probe/python_layout.hpp"

#include <cstring>

namespace vramtrack::probe {
namespace {

constexpr PythonLayout before_311(int minor) {
  // Include/cpython/pystate.h, frameobject.h (3.10: cpython/frameobject.h), code.h (3.8: code.h)
  // of 3.8.18, 3.9.18, 3.10.13.
  PythonLayout layout;
  layout.minor = minor;
  layout.thread_frame = 24;
  layout.frame_previous = 24;
  layout.frame_code = 32;
  layout.frame_at = minor == 10 ? 96 : 104;
  layout.code_file = 104;
  layout.code_name = 112;
  layout.code_table = 120;
  layout.code_first_line = 40;
  layout.ascii_text = 48;
  layout.other_text = 72;
  layout.lines = minor == 10 ? LineTable::ranges : LineTable::pairs;
  return layout;
}

constexpr PythonLayout since_311(int minor) {
  // Include/cpython/pystate.h, internal/pycore_frame.h, cpython/code.h of 3.11.7 and 3.12.1.
  PythonLayout layout;
  layout.minor = minor;
  layout.thread_frame = 56;
  layout.is_frame_held = true;
  layout.held_frame = minor == 11 ? 8 : 0;
  layout.frame_previous = minor == 11 ? 48 : 8;
  layout.frame_code = minor == 11 ? 32 : 0;
  layout.frame_at = 56;
  layout.frame_owner = minor == 11 ? 0 : 70;
  layout.frame_is_entry = minor == 11 ? 68 : 0;
  layout.code_file = 112;
  layout.code_name = 128;
  layout.code_table = 136;
  layout.code_first_line = minor == 11 ? 72 : 68;
  layout.code_bytes = minor == 11 ? 184 : 192;
  layout.ascii_text = minor == 11 ? 48 : 40;
  layout.other_text = minor == 11 ? 72 : 56;
  layout.lines = LineTable::locations;
  return layout;
}

}  // namespace

const PythonLayout* layout_of(int minor) {
  static constexpr PythonLayout kLayouts[] = {before_311(8), before_311(9), before_311(10), since_311(11),
                                              since_311(12)};
  return minor >= 8 && minor <= 12 ? &kLayouts[minor - 8] : nullptr;
}

const char* read_layout(const std::uint64_t* offsets, std::size_t words, PythonLayout& into) {
  // _Py_DebugOffsets: Include/internal/pycore_runtime.h of 3.13.0, pycore_debug_offsets.h of 3.14.10. Words: cookie,
  // version, free_threaded, 3 of the runtime, 13 of an interpreter (16 in 3.14), 9 of a thread, 6 of a frame (8), 10 of
  // a code object (11), and others that are not needed here.
  if (words < kDebugOffsetWords || std::memcmp(offsets, "xdebugpy", 8) != 0)
    return "its runtime does not describe itself";
  const auto minor = static_cast<int>(offsets[1] >> 16U & 0xffU);
  if (offsets[1] >> 24U != 3 || (minor != 13 && minor != 14)) return "this version of Python is not known";
  if (offsets[2] != 0) return "this is a free-threaded Python";
  const std::uint64_t* thread = offsets + 6 + (minor == 13 ? 13 : 16);
  const std::uint64_t* frame = thread + 9;
  const std::uint64_t* code = frame + (minor == 13 ? 6 : 8);
  for (const std::uint64_t* word = thread; word < code + 10; ++word)
    if (*word > 4096) return "its runtime describes itself in an unknown way";
  into.minor = minor;
  into.thread_frame = static_cast<std::uint16_t>(thread[4]);
  into.frame_previous = static_cast<std::uint16_t>(frame[1]);
  into.frame_code = static_cast<std::uint16_t>(frame[2]);
  into.frame_at = static_cast<std::uint16_t>(frame[3]);
  into.frame_owner = static_cast<std::uint16_t>(frame[5]);
  into.code_file = static_cast<std::uint16_t>(code[1]);
  into.code_name = static_cast<std::uint16_t>(code[3]);
  into.code_table = static_cast<std::uint16_t>(code[4]);
  into.code_first_line = static_cast<std::uint16_t>(code[5]);
  into.code_bytes = static_cast<std::uint16_t>(code[9]);
  into.ascii_text = 40;
  into.other_text = 56;
  into.lines = LineTable::locations;
  return nullptr;
}

}  // namespace vramtrack::probe

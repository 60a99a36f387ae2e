#include "probe/python_frames.hpp"

#include <atomic>
#include <cstring>

#include "probe/modules.hpp"
#include "probe/python_layout.hpp"
#include "probe/python_lines.hpp"
#include "probe/python_text.hpp"
#include "probe/ring.hpp"
#include "probe/stacks_table.hpp"
#include "probe/wire.hpp"

namespace vramtrack::probe {
namespace {

enum class State : int { unseen, found, ready, refused };
std::atomic<State> state{State::unseen};
/// Number of modules at the last search for Python, which is repeated when there are more.
std::atomic<std::uint32_t> looked{0};
Spin spin;

// Constant once `state` is not `unseen`.
PythonLayout layout;
std::uint64_t code_type = 0;
std::uint64_t text_type = 0;
using ThisThreadState = void* (*)();
using IsInitialized = int (*)();
ThisThreadState this_thread_state = nullptr;
IsInitialized is_initialized = nullptr;

/// Code objects by address and content.
Recent<14> recent_codes;
Numbers<16> codes;
constexpr std::size_t kMostCodes = 49152;

template <class T>
T load(std::uint64_t address) {
  return *reinterpret_cast<const T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

void refuse(std::string_view why) {
  Line<256> line;
  line.add("no Python frames: ").add(why);
  ring().put(head_of(Record::mark, Call::none, 0, kNotice, record_text(line.view())), when(ring().now_us(), 0), 0, 0);
  state.store(State::refused, std::memory_order_release);
}

/// The minor version: 10 for "3.10.13 (main, ...)"; 0 if not understood.
int minor_of(const char* version) {
  if (version == nullptr || version[0] != '3' || version[1] != '.') return 0;
  int minor = 0;
  for (const char* digit = version + 2; *digit >= '0' && *digit <= '9' && minor < 1000; ++digit)
    minor = minor * 10 + (*digit - '0');
  return minor;
}

/// Determines the layout; returns nullptr if it is known, else the reason why not.
const char* find_layout(const Module& python) {
  int minor = 0;
  if (const std::uint64_t version = find_symbol(python, "Py_Version")) {  // 3.11 and newer
    minor = static_cast<int>(peek<unsigned long>(version) >> 16U & 0xffU);
  } else if (const std::uint64_t get = find_symbol(python, "Py_GetVersion")) {
    using GetVersion = const char* (*)();
    minor = minor_of(reinterpret_cast<GetVersion>(get)());  // NOLINT(performance-no-int-to-ptr)
  }
  if (minor < 8) return "Python is older than 3.8";
  if (const PythonLayout* known = layout_of(minor)) {
    layout = *known;
    return nullptr;
  }
  std::uint64_t words[kDebugOffsetWords];
  const std::uint64_t runtime = find_symbol(python, "_PyRuntime");
  if (runtime == 0 || !read_memory(runtime, words, sizeof words)) return "its runtime cannot be found";
  return read_layout(words, kDebugOffsetWords, layout);
}

void look_for_python() {
  const Locked locked(spin);
  if (state.load(std::memory_order_relaxed) != State::unseen) return;
  const std::uint32_t count = modules().count();
  for (std::uint32_t number = looked.load(std::memory_order_relaxed) + 1; number <= count; ++number) {
    const Module& module = modules()[number];
    if (!module.is_program && !module.has_python_name) continue;
    const std::uint64_t thread_state = find_symbol(module, "PyGILState_GetThisThreadState");
    if (thread_state == 0) continue;
    // NOLINTBEGIN(performance-no-int-to-ptr)
    this_thread_state = reinterpret_cast<ThisThreadState>(thread_state);
    is_initialized = reinterpret_cast<IsInitialized>(find_symbol(module, "Py_IsInitialized"));
    // NOLINTEND(performance-no-int-to-ptr)
    code_type = find_symbol(module, "PyCode_Type");
    text_type = find_symbol(module, "PyUnicode_Type");
    if (is_initialized == nullptr || code_type == 0 || text_type == 0) continue;
    if (const char* why = find_layout(module))
      refuse(why);
    else
      state.store(State::found, std::memory_order_release);
    break;
  }
  looked.store(count, std::memory_order_relaxed);
}

std::uint64_t innermost(std::uint64_t thread) {
  const auto frame = load<std::uint64_t>(thread + layout.thread_frame);
  return layout.is_frame_held && frame != 0 ? load<std::uint64_t>(frame + layout.held_frame) : frame;
}

bool is_sane_text(std::uint64_t text) {
  char buffer[256];
  return peek<std::uint64_t>(text + kObjectType) == text_type &&
         read_text(read_memory, layout, text, buffer, sizeof buffer) > 0;
}

/// Walks once with checked reads; returns nullptr if the layout is right, else the reason why not.
const char* check(std::uint64_t thread) {
  auto frame = peek<std::uint64_t>(thread + layout.thread_frame);
  if (layout.is_frame_held) frame = peek<std::uint64_t>(frame + layout.held_frame);
  if (frame == 0) return "a thread's innermost frame was not found";
  int seen = 0;
  for (int depth = 0; frame != 0; ++depth) {
    if (depth == 1 << 16) return "the chain of frames does not end";
    std::uint64_t previous = 0;
    if (!read_memory(frame + layout.frame_previous, &previous, sizeof previous)) return "a frame cannot be read";
    const bool is_shim = layout.frame_owner != 0 && peek<std::uint8_t>(frame + layout.frame_owner) >= 3;
    if (!is_shim && seen < 64) {
      ++seen;
      const std::uint64_t code = peek<std::uint64_t>(frame + layout.frame_code) & ~std::uint64_t{3};
      if (peek<std::uint64_t>(code + kObjectType) != code_type) return "a frame's code object is not one";
      if (!is_sane_text(peek<std::uint64_t>(code + layout.code_file)) ||
          !is_sane_text(peek<std::uint64_t>(code + layout.code_name)))
        return "a code object's names are not strings";
      const auto line = peek<std::int32_t>(code + layout.code_first_line);
      if (line < 0 || line > 1 << 28) return "a code object's first line is out of range";
      if (peek<std::uint64_t>(peek<std::uint64_t>(code + layout.code_table) + kBytesSize) > 1U << 28U)
        return "a code object's table of lines is out of range";
    }
    frame = previous;
  }
  return seen == 0 ? "no frame is a function's" : nullptr;
}

std::int64_t at_of(std::uint64_t frame, std::uint64_t code) {
  if (layout.code_bytes != 0)
    return load<std::int64_t>(frame + layout.frame_at) - static_cast<std::int64_t>(code + layout.code_bytes);
  const std::int64_t at = load<std::int32_t>(frame + layout.frame_at);
  return layout.minor == 10 ? at * 2 : at;  // in instructions, in 3.10
}

std::uint64_t key_of(std::uint64_t code) {
  Hash hash;
  hash.add(code);
  hash.add(load<std::uint64_t>(code + layout.code_file) ^ load<std::uint64_t>(code + layout.code_name) << 20U);
  hash.add(load<std::uint64_t>(code + layout.code_table) ^
           std::uint64_t{load<std::uint32_t>(code + layout.code_first_line)} << 40U);
  return hash.value();
}

}  // namespace

std::size_t python_frames(PythonFrame* into, std::size_t most) {
  State now = state.load(std::memory_order_acquire);
  if (now == State::refused) return 0;
  if (now == State::unseen) {
    if (modules().count() == looked.load(std::memory_order_relaxed)) return 0;
    look_for_python();
    now = state.load(std::memory_order_acquire);
    if (now == State::unseen || now == State::refused) return 0;
  }
  // Do not read during shutdown: thread states are freed while their threads still run.
  if (is_initialized() == 0) return 0;
  const auto thread = reinterpret_cast<std::uint64_t>(this_thread_state());
  if (thread == 0) return 0;
  if (now == State::found) {
    // Every version has a word there that is zero only if no frame runs (or, in 3.11 and 3.12, never).
    auto frame = peek<std::uint64_t>(thread + layout.thread_frame);
    if (layout.is_frame_held && frame != 0) frame = peek<std::uint64_t>(frame + layout.held_frame);
    if (frame == 0) return 0;
    const Locked locked(spin);
    if (state.load(std::memory_order_relaxed) == State::found) {
      if (const char* why = check(thread))
        refuse(why);
      else
        state.store(State::ready, std::memory_order_release);
    }
    if (state.load(std::memory_order_relaxed) != State::ready) return 0;
  }
  std::size_t count = 0;
  const bool is_each_entry = layout.minor <= 10;
  for (std::uint64_t frame = innermost(thread); frame != 0 && count < most;
       frame = load<std::uint64_t>(frame + layout.frame_previous)) {
    if (layout.frame_owner != 0 && load<std::uint8_t>(frame + layout.frame_owner) >= 3) {
      if (count > 0) into[count - 1].is_entry = true;
      continue;
    }
    const std::uint64_t code = load<std::uint64_t>(frame + layout.frame_code) & ~std::uint64_t{3};
    PythonFrame& frame_here = into[count++];
    frame_here.code = code;
    frame_here.key = key_of(code);
    frame_here.at = at_of(frame, code);
    frame_here.is_entry =
        is_each_entry || (layout.frame_is_entry != 0 && load<std::uint8_t>(frame + layout.frame_is_entry) != 0);
  }
  return count;
}

std::uint32_t record_code(const PythonFrame& frame) {
  std::uint32_t number = 0;
  if (recent_codes.find(frame.key, number)) return number;
  char file[1024];
  char name[512];
  const auto first_line = peek<std::uint32_t>(frame.code + layout.code_first_line);
  const std::string_view file_text(
      file, read_text(read_memory, layout, peek<std::uint64_t>(frame.code + layout.code_file), file, sizeof file));
  const std::string_view name_text(
      name, read_text(read_memory, layout, peek<std::uint64_t>(frame.code + layout.code_name), name, sizeof name));
  Hash hash;
  for (const char c : file_text) hash.add(static_cast<unsigned char>(c));
  hash.add(256);
  for (const char c : name_text) hash.add(static_cast<unsigned char>(c));
  hash.add(std::uint64_t{first_line} << 32U);
  bool is_new = false;
  number = codes.number(hash.value(), kMostCodes, is_new);
  if (number == 0) return 0;
  if (is_new) {
    const std::uint32_t file_number = record_text(file_text);
    const std::uint32_t name_number = record_text(name_text);
    ring().put(head_of(Record::code, Call::none, 0, 0, number), first_line,
               file_number | std::uint64_t{name_number} << 32U, 0);
    codes.is_written(number);
  }
  recent_codes.put(frame.key, number);
  return number;
}

std::uint32_t line_of(const PythonFrame& frame) {
  const auto table = peek<std::uint64_t>(frame.code + layout.code_table);
  return find_line(read_memory, layout.lines, table + kBytesText, peek<std::uint64_t>(table + kBytesSize), frame.at,
                   peek<std::int32_t>(frame.code + layout.code_first_line));
}

bool python_shuts_down() {
  return state.load(std::memory_order_acquire) == State::ready && is_initialized() == 0;
}

void forget_python() {
  spin.reset();
  state.store(State::unseen, std::memory_order_relaxed);
  looked.store(0, std::memory_order_relaxed);
  recent_codes.forget();
  codes.forget();
}

}  // namespace vramtrack::probe

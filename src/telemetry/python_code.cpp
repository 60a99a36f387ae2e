#include "telemetry/python_code.hpp"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <utility>

#include "probe/python_lines.hpp"
#include "probe/python_text.hpp"

namespace vramtrack::telemetry {
namespace {

/// The process that read() reads from: the probe's readers take a plain function.
thread_local std::uint32_t reading_pid = 0;

bool read(std::uint64_t address, void* into, std::size_t bytes) {
  const iovec local{into, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(static_cast<pid_t>(reading_pid), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

template <class T>
T load(std::uint64_t address) {
  T value{};
  return read(address, &value, sizeof value) ? value : T{};
}

std::string text_of(const probe::PythonLayout& layout, std::uint64_t object) {
  char buffer[1024];
  return {buffer, probe::read_text(read, layout, object, buffer, sizeof buffer)};
}

/// PyTypeObject.tp_name, the same in all versions (Include/cpython/object.h).
constexpr std::uint64_t kTypeName = 24;
constexpr std::uint64_t kTag = 3;  ///< in the low bits of a frame's code, from 3.14 on

bool is_code(std::uint64_t object) {
  const auto name = load<std::uint64_t>(load<std::uint64_t>(object + probe::kObjectType) + kTypeName);
  char text[5] = {};
  return name != 0 && read(name, text, sizeof text) &&
         std::string_view(text, sizeof text) == std::string_view("code", 5);
}

/// The first words of the table that describes the interpreter's data from 3.13 on, and lies in the writable part of
/// its file; empty if not found.
std::vector<std::uint64_t> debug_offsets(std::uint32_t pid, const std::string& path) {
  constexpr std::size_t kPiece = 1 << 16;
  constexpr std::string_view kCookie = "xdebugpy";
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  std::vector<std::uint64_t> words(probe::kDebugOffsetWords);
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0;
    char rights[5] = {};
    if (!line.ends_with(path) || std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) != 3) continue;
    if (rights[1] != 'w') continue;
    std::vector<char> piece(kPiece);
    for (std::uint64_t at = begin; at < end; at += kPiece) {
      const std::size_t bytes = std::min<std::uint64_t>(kPiece, end - at);
      if (!read(at, piece.data(), bytes)) break;
      for (std::size_t i = 0; i + kCookie.size() <= bytes; i += sizeof(std::uint64_t))
        if (std::string_view(&piece[i], kCookie.size()) == kCookie &&
            read(at + i, words.data(), words.size() * sizeof(std::uint64_t)))
          return words;
    }
  }
  return {};
}

}  // namespace

int python_minor(std::string_view file_name) {
  if (file_name.starts_with("lib")) file_name.remove_prefix(3);
  if (!file_name.starts_with("python3.")) return 0;
  file_name.remove_prefix(8);
  int minor = 0;
  const auto [end, error] = std::from_chars(file_name.data(), file_name.data() + file_name.size(), minor);
  const std::string_view rest = file_name.substr(static_cast<std::size_t>(end - file_name.data()));
  return error == std::errc{} && (rest.empty() || rest.starts_with(".so")) ? minor : 0;
}

std::optional<PythonCode> PythonCode::of(std::uint32_t pid, const std::vector<MappedFile>& files, std::string& why) {
  for (const MappedFile& file : files) {
    const int minor = python_minor(std::string_view(file.path).substr(file.path.rfind('/') + 1));
    if (minor == 0) continue;
    if (const probe::PythonLayout* const layout = probe::layout_of(minor)) return PythonCode(pid, *layout);
    reading_pid = pid;
    const std::vector<std::uint64_t> offsets = debug_offsets(pid, file.path);
    probe::PythonLayout layout;
    const char* const unknown = probe::read_layout(offsets.data(), offsets.size(), layout);
    if (unknown == nullptr) {
      why.clear();
      return PythonCode(pid, layout);
    }
    // The program may be a small launcher, with the interpreter in a library.
    why = fmt::format("no Python frames of Python 3.{}: {}", minor, unknown);
  }
  return std::nullopt;
}

telemetry_python PythonCode::layout() const {
  telemetry_python out{};
  out.has_layout = 1;
  out.key = TELEMETRY_KEYS;
  out.thread_frame = layout_.thread_frame;
  out.is_frame_held = layout_.is_frame_held ? 1 : 0;
  out.held_frame = layout_.held_frame;
  out.frame_previous = layout_.frame_previous;
  out.frame_code = layout_.frame_code;
  out.frame_at = layout_.frame_at;
  out.frame_mark = layout_.frame_owner != 0 ? layout_.frame_owner : layout_.frame_is_entry;
  return out;
}

PythonCode::Function* PythonCode::function(std::uint64_t code) {
  const auto file = load<std::uint64_t>(code + layout_.code_file);
  const auto name = load<std::uint64_t>(code + layout_.code_name);
  const auto table = load<std::uint64_t>(code + layout_.code_table);
  const auto first_line = load<std::uint32_t>(code + layout_.code_first_line);
  Function& known = functions_[code];
  if (known.table == table && known.file == file && known.name == name && known.first_line == first_line) return &known;
  if (!is_code(code)) return nullptr;
  known = {file, name, table, first_line, text_of(layout_, file), text_of(layout_, name), {}};
  return &known;
}

std::vector<PythonFrame> PythonCode::frames(const telemetry_frame* raw, std::size_t count) {
  reading_pid = pid_;
  std::vector<PythonFrame> out;
  for (std::size_t i = 0; i < count; ++i) {
    // 3.12 and newer: an entry frame that the interpreter adds below the frames of one call of its loop.
    if (layout_.frame_owner != 0 && raw[i].mark >= 3) {
      if (!out.empty()) out.back().is_entry = true;
      continue;
    }
    const std::uint64_t code = raw[i].code & ~kTag;
    Function* const function = this->function(code);
    if (function == nullptr) continue;  // freed since
    std::int64_t at = 0;
    if (layout_.code_bytes != 0)
      at = static_cast<std::int64_t>(raw[i].at - (code + layout_.code_bytes));
    else
      at = static_cast<std::int32_t>(raw[i].at) * (layout_.minor == 10 ? 2 : 1);  // 3.10 counts in instructions
    const auto [line, is_new] = function->lines.try_emplace(at);
    if (is_new)
      line->second = probe::find_line(read, layout_.lines, function->table + probe::kBytesText,
                                      load<std::uint64_t>(function->table + probe::kBytesSize), at,
                                      static_cast<std::int32_t>(function->first_line));
    const bool is_entry = layout_.minor <= 10 || (layout_.frame_is_entry != 0 && raw[i].mark != 0);
    out.push_back({function->file_text, function->name_text, function->first_line, line->second, code, is_entry});
  }
  return out;
}

}  // namespace vramtrack::telemetry

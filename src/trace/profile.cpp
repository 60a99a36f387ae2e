#include "trace/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/order.hpp"
#include "trace/own_code.hpp"

namespace vramtrack::trace {
namespace {

using namespace std::string_view_literals;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Folders of CPython's source tree.
constexpr std::string_view kCpythonFolders[] = {"Python"sv, "Objects"sv, "Modules"sv, "Programs"sv, "Parser"sv};

/// How close a frame is to code that a person would change; the lowest wins; among equals, the innermost.
enum Rank { kOwn, kLibrary, kFramework, kStandard, kNative, kNoise };

bool is_python(std::string_view file) {
  return file.ends_with(".py"sv) || file.ends_with(".pyx"sv) || (file.starts_with('<') && file.ends_with('>'));
}

/// Whether the path has this folder, with either separator, because Windows writes snapshots, too.
bool has_folder(std::string_view file, std::string_view folder) {
  for (std::size_t at = file.find(folder); at != std::string_view::npos; at = file.find(folder, at + 1)) {
    const bool begins = at == 0 || file[at - 1] == '/' || file[at - 1] == '\\';
    const std::size_t end = at + folder.size();
    if (begins && end < file.size() && (file[end] == '/' || file[end] == '\\')) return true;
  }
  return false;
}

bool is_framework(std::string_view file) {
  const bool packaged = has_folder(file, "site-packages") || has_folder(file, "dist-packages");
  return (packaged && (has_folder(file, "torch") || has_folder(file, "functorch") || has_folder(file, "triton"))) ||
         contains(file, "/pytorch/torch/") || file.starts_with("torch/");
}

/// /usr/lib/python3.11/runpy.py, C:\Python311\Lib\runpy.py: whether the file belongs to Python's own library.
bool is_standard(std::string_view file) {
  if (has_folder(file, "site-packages") || has_folder(file, "dist-packages")) return false;
  if (file.starts_with("<frozen")) return true;
  const std::size_t at = file.rfind("/lib/python");
  if (at != std::string_view::npos) return true;
  return contains(file, "\\Lib\\") || contains(file, "\\lib\\");
}

/// Whether the file is the interpreter's binary, or one of its sources at any path where it was built.
bool is_of_cpython(std::string_view file) {
  if (is_interpreter(file)) return true;
  for (const std::string_view part : {"pythonrun.c"sv, "ceval.c"sv, "pycore_ceval.h"sv, "cpython/abstract.h"sv})
    if (contains(file, part)) return true;
  if (!file.ends_with(".c"sv)) return false;
  const bool is_its_tree = !file.starts_with('/') || contains(file, "ython-3"sv) || contains(file, "ython3"sv) ||
                           contains(file, "/cpython/"sv);
  return is_its_tree && std::any_of(std::begin(kCpythonFolders), std::end(kCpythonFolders),
                                    [file](std::string_view folder) { return has_folder(file, folder); });
}

/// For code without a name, PyTorch writes an offset in the binary as the line: "libtorch_cuda.so:68989582 ??".
bool is_nameless(std::string_view name, std::string_view file) {
  return name == "??"sv && !file.empty() && file != "??"sv && !is_python(file);
}

Rank rank(const Symbols& symbols, FrameId frame) {
  if (!is_informative(symbols, frame)) return kNoise;
  const std::string_view file = symbols.file(frame);
  if (!is_python(file)) return kNative;
  if (is_framework(file)) return kFramework;
  if (is_standard(file)) return kStandard;
  return has_folder(file, "site-packages") || has_folder(file, "dist-packages") ? kLibrary : kOwn;
}

}  // namespace

void ProfileBuilder::add(StackId stack, std::int64_t bytes, std::int64_t blocks) {
  StackBytes& entry = by_stack_[index_of(stack)];
  entry.stack = stack;
  entry.bytes += bytes;
  entry.blocks += blocks;
}

Profile ProfileBuilder::profile() const {
  Profile out;
  out.reserve(by_stack_.size());
  for (const auto& [stack, entry] : by_stack_)
    if (entry.bytes != 0 || entry.blocks != 0) out.push_back(entry);
  std::sort(out.begin(), out.end(), [](const StackBytes& a, const StackBytes& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
  return out;
}

Profile live_profile(const Snapshot& snapshot, std::optional<std::uint32_t> device) {
  ProfileBuilder builder;
  for (const Segment& segment : snapshot.segments) {
    if (device && segment.device != *device) continue;
    for (std::size_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
      const Block& block = snapshot.blocks[i];
      if (block.state == BlockState::active)
        builder.add(block.stack, static_cast<std::int64_t>(block.requested_bytes), 1);
    }
  }
  return builder.profile();
}

bool is_informative(const Symbols& symbols, FrameId frame) {
  const std::string_view name = symbols.name(frame);
  const std::string_view file = symbols.file(frame);
  // CPython's own functions; symbolizers often name its static ones after a neighbour (PyUnicode_Tailmatch).
  const bool is_cpython = (name.starts_with("Py"sv) && name.size() > 2 && name[2] >= 'A' && name[2] <= 'Z') ||
                          name.starts_with("_Py"sv) || name.starts_with("method_vectorcall"sv) ||
                          name.starts_with("slot_tp_"sv) || name.starts_with("cfunction_"sv);
  if (is_cpython && !is_python(file)) return false;
  if (name == "_start"sv || name.starts_with("__libc_start"sv)) return false;
  for (const std::string_view noise : {"unwind::unwind"sv, "CapturedTraceback::gather"sv, "gather_with_cpp"sv})
    if (contains(name, noise)) return false;
  for (const std::string_view noise : {"core/boxing"sv, "/Register"sv, "/Redispatch"sv})
    if (contains(file, noise)) return false;
  if (is_of_cpython(file)) return false;
  if (is_nameless(name, file)) return false;
  return !name.empty() || !file.empty();
}

bool is_framework(const Symbols& symbols, FrameId frame) {
  return is_framework(symbols.file(frame));
}

bool is_python(const Symbols& symbols, FrameId frame) {
  return is_python(symbols.file(frame));
}

std::optional<FrameId> site_of(const Symbols& symbols, StackId stack) {
  std::optional<FrameId> best;
  Rank best_rank = kNoise;
  for (const FrameId frame : symbols.stack(stack)) {
    const Rank its_rank = rank(symbols, frame);
    if (!best || its_rank < best_rank) {
      best = frame;
      best_rank = its_rank;
    }
    if (best_rank == kOwn) break;
  }
  return best;
}

std::vector<LineBytes> by_line(const Profile& profile, const LineOf& line_of) {
  std::vector<LineBytes> out;
  std::unordered_map<std::uint32_t, std::size_t> place;  // by frame
  constexpr std::uint32_t kNone = 0xffffffff;
  for (const StackBytes& held : profile) {
    const auto frame = line_of(held.stack);
    const auto [at, is_new] = place.try_emplace(frame ? index_of(*frame) : kNone, out.size());
    if (is_new) out.push_back({frame, held.stack, 0, 0, 0});
    LineBytes& line = out[at->second];
    line.bytes += held.bytes;
    line.blocks += held.blocks;
    ++line.stacks;
  }
  order(out, [](const LineBytes& a, const LineBytes& b) { return a.bytes > b.bytes; });
  return out;
}

std::vector<LineBytes> by_line(const Profile& profile, const Symbols& symbols) {
  return by_line(profile, [&symbols](StackId stack) { return site_of(symbols, stack); });
}

std::string frame_words(const Symbols& symbols, FrameId frame) {
  std::string_view file = symbols.file(frame);
  const std::string_view name = symbols.name(frame);
  if (file.empty() || file == "??") return std::string(name);
  // Two folders are enough to distinguish one model.py from another; the home folder adds nothing.
  std::size_t at = file.size();
  for (int folders = 0; folders < 3 && at != std::string_view::npos && at > 0; ++folders)
    at = file.find_last_of("/\\", at - 1);
  if (at != std::string_view::npos && at > 0 && is_python(file)) file.remove_prefix(at + 1);
  const std::uint32_t line = symbols.frame(frame).line;
  if (is_nameless(name, file)) return fmt::format("{}+0x{:x}", file.substr(file.rfind('/') + 1), line);
  if (line == 0 && name == file.substr(file.rfind('/') + 1)) return std::string(name);
  if (line == 0) return fmt::format("{} {}", file, name);
  return fmt::format("{}:{} {}", file, line, name);
}

std::string site_words(const Symbols& symbols, StackId stack) {
  return site_words(symbols, site_of(symbols, stack));
}

std::string site_words(const Symbols& symbols, std::optional<FrameId> frame) {
  return frame ? frame_words(symbols, *frame) : "(no stack recorded)";
}

}  // namespace vramtrack::trace

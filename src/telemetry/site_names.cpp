#include "telemetry/site_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"
#include "symbolize/debug_names.hpp"
#include "trace/profile.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::telemetry {
namespace {

constexpr std::size_t kMostNameBytes = 256;

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::uint64_t hash_of(const FollowedStack& stack) {
  // FNV-1a, 64 bits.
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](std::uint64_t value) {
    for (int i = 0; i < 8; ++i, value >>= 8U) hash = (hash ^ (value & 0xffU)) * 0x100000001b3U;
  };
  for (const std::uint64_t address : stack.native) add(address);
  for (std::size_t i = 0; i < stack.python_count; ++i) {
    add(stack.python[i].code);
    add(stack.python[i].at);
  }
  return hash;
}

std::string frame_text(std::string_view function, std::string_view file, std::uint32_t line) {
  trace::Symbols symbols;
  const trace::FrameId frame = symbols.intern(trace::Frame{symbols.intern(function), symbols.intern(file), line});
  return trace::frame_words(symbols, frame);
}

}  // namespace

bool is_of_traced_allocator(const std::vector<MappedFile>& files, const std::vector<std::uint64_t>& addresses) {
  return std::any_of(addresses.begin(), addresses.end(), [&](std::uint64_t address) {
    const MappedFile* const file = file_at(files, address);
    return file != nullptr && base_name(file->path).starts_with("libc10");
  });
}

/// The innermost frame of the program's own code; else the outermost that has a name.
std::string SiteNames::native_words(const FollowedProcess& process, const std::vector<std::uint64_t>& addresses) {
  if (!native_) native_ = std::make_unique<symbolize::DebugNames>();
  std::string outermost;
  for (const std::uint64_t address : addresses) {
    const MappedFile* const file = file_at(process.unwinder->files(), address);
    if (file == nullptr) continue;
    const std::uint64_t offset = address - file->begin + file->file_offset;
    const auto names = native_->look_up(reach(process.known.pid, *file), {}, offset);
    if (names.empty()) {
      const std::string words = fmt::format("{}+{:#x}", base_name(file->path), offset);
      if (own_.is_own_native(file->path, {})) return words;
      outermost = words;
    }
    for (const trace::NativeName& name : names) {
      std::string words = frame_text(name.function, name.file, name.line);
      if (own_.is_own_native(file->path, name.file)) return words;
      outermost = std::move(words);
    }
  }
  return outermost.empty() ? "(no stack)" : outermost;
}

/// A Python line says more than the native code below it.
std::string SiteNames::words_of(FollowedProcess& process, const FollowedStack& stack) {
  std::vector<PythonFrame> frames;
  if (process.python && stack.python_count > 0) frames = process.python->frames(stack.python, stack.python_count);
  if (frames.empty()) return native_words(process, stack.native);
  const auto own =
      std::find_if(frames.begin(), frames.end(), [&](const PythonFrame& f) { return own_.is_own_python(f.file); });
  const PythonFrame& frame = own == frames.end() ? frames.front() : *own;
  return frame_text(frame.name, frame.file, frame.line);
}

std::uint32_t SiteNames::number_of(FollowedProcess& process, const FollowedStack& stack) {
  if (stacks_.size() >= kMostStacks) stacks_.clear();
  const auto [known, is_new] = stacks_.try_emplace(hash_of(stack), 0);
  if (!is_new) return known->second;
  const std::string name = std::string(printable(words_of(process, stack))).substr(0, kMostNameBytes);
  const auto number = numbers_.find(name);
  if (number != numbers_.end()) return known->second = number->second;
  if (names_.size() > kMostNames) return 0;
  names_.push_back(name);
  return known->second = numbers_[name] = static_cast<std::uint32_t>(names_.size() - 1);
}

}  // namespace vramtrack::telemetry

#include "telemetry/site_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/ascii.hpp"
#include "core/printable.hpp"
#include "symbolize/debug_names.hpp"
#include "trace/category.hpp"
#include "trace/profile.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::telemetry {
namespace {

constexpr std::size_t kMostNameBytes = 256;

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

/// Frames with names, as the category rules expect them.
class Frames {
 public:
  trace::FrameId add(std::string_view function, std::string_view file, std::uint32_t line) {
    frames_.push_back(symbols_.intern(trace::Frame{symbols_.intern(function), symbols_.intern(file), line}));
    return frames_.back();
  }
  [[nodiscard]] std::string words(trace::FrameId frame) const { return trace::frame_words(symbols_, frame); }
  [[nodiscard]] trace::Category category() {
    const trace::StackId stack = symbols_.intern(frames_);
    return trace::StackCategories(symbols_).of(stack);
  }

 private:
  trace::Symbols symbols_;
  std::vector<trace::FrameId> frames_;
};

}  // namespace

bool is_of_traced_allocator(const std::vector<MappedFile>& files, const std::vector<std::uint64_t>& addresses) {
  return std::any_of(addresses.begin(), addresses.end(), [&](std::uint64_t address) {
    const MappedFile* const file = file_at(files, address);
    return file != nullptr && base_name(file->path).starts_with("libc10");
  });
}

/// The text is the innermost frame of the program's own code, or the outermost that has a name.
SiteNames::Seen SiteNames::look_at_native(const FollowedProcess& process, const std::vector<std::uint64_t>& addresses) {
  if (!native_) native_ = std::make_unique<symbolize::DebugNames>();
  Frames frames;
  std::string own, outermost;
  for (const std::uint64_t address : addresses) {
    const MappedFile* const file = file_at(process.unwinder->files(), address);
    if (file == nullptr) continue;
    const std::uint64_t offset = address - file->begin + file->file_offset;
    const auto names = native_->look_up(reach(process.known.pid, *file), {}, offset);
    if (names.empty()) {
      frames.add({}, file->path, 0);
      const bool is_own = own_.is_own_native(file->path, {});
      outermost = is_own ? fmt::format("{}+{:#x}", base_name(file->path), offset) : std::string(base_name(file->path));
      if (own.empty() && is_own) own = outermost;
    }
    for (const trace::NativeName& name : names) {
      outermost = frames.words(frames.add(name.function, name.file.empty() ? file->path : name.file, name.line));
      if (own.empty() && own_.is_own_native(file->path, name.file)) own = outermost;
    }
  }
  return {!own.empty() ? own : !outermost.empty() ? outermost : "(no stack)", frames.category()};
}

/// A Python line is more useful than the native code below it, where only the libraries are inspected.
SiteNames::Seen SiteNames::look_at(FollowedProcess& process, const FollowedStack& stack) {
  std::vector<PythonFrame> python;
  if (process.python && stack.python_count > 0) python = process.python->frames(stack.python, stack.python_count);
  if (python.empty()) return look_at_native(process, stack.native);
  Frames frames;
  for (const std::uint64_t address : stack.native)
    if (const MappedFile* const file = file_at(process.unwinder->files(), address)) frames.add({}, file->path, 0);
  std::string own, innermost;
  for (const PythonFrame& frame : python) {
    const std::string words = frames.words(frames.add(frame.name, frame.file, frame.line));
    if (innermost.empty()) innermost = words;
    if (own.empty() && own_.is_own_python(frame.file)) own = words;
  }
  return {own.empty() ? innermost : own, frames.category()};
}

SiteNames::Place SiteNames::place_of(FollowedProcess& process, const FollowedStack& stack) {
  if (stacks_.size() >= kMostStacks) stacks_.clear();
  const auto [known, is_new] = stacks_.try_emplace(hash_of(stack));
  if (!is_new) return known->second;
  Place& place = known->second;
  const Seen seen = look_at(process, stack);
  place.category = seen.category;
  const std::string name = std::string(printable(seen.words)).substr(0, kMostNameBytes);
  if (const auto number = numbers_.find(name); number != numbers_.end()) {
    place.number = number->second;
  } else if (names_.size() <= kMostNames) {
    names_.push_back(name);
    place.number = numbers_[name] = static_cast<std::uint32_t>(names_.size() - 1);
  }
  return place;
}

}  // namespace vramtrack::telemetry

// Symbols: the names in allocation traces, each stored once: strings, frames, stacks. Read two traces into one Symbols
// to compare them, so that the same stack has the same id in both.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack::trace {

enum class StringId : std::uint32_t {};
enum class FrameId : std::uint32_t {};
enum class StackId : std::uint32_t {};

/// Always the id of the empty string.
inline constexpr StringId kNoText{0};

/// Means that no stack was recorded. Always the id of the empty list of frames.
inline constexpr StackId kNoStack{0};

constexpr std::uint32_t index_of(StringId id) {
  return static_cast<std::uint32_t>(id);
}
constexpr std::uint32_t index_of(FrameId id) {
  return static_cast<std::uint32_t>(id);
}
constexpr std::uint32_t index_of(StackId id) {
  return static_cast<std::uint32_t>(id);
}

struct Frame {
  StringId name{};
  StringId file{};
  std::uint32_t line = 0;
  bool operator==(const Frame&) const = default;
};

/// Open-addressed table of ids by hash; the caller compares what the ids stand for. 8 to 16 bytes per id.
class IdTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  /// The id among those stored under `hash` for which `same(id)` is true, or kNone.
  template <class Same>
  [[nodiscard]] std::uint32_t find(std::uint32_t hash, Same same) const {
    if (cells_.empty()) return kNone;
    for (std::size_t at = hash & mask_; cells_[at].id != kNone; at = (at + 1) & mask_)
      if (cells_[at].hash == hash && same(cells_[at].id)) return cells_[at].id;
    return kNone;
  }
  void insert(std::uint32_t hash, std::uint32_t id);

 private:
  struct Cell {
    std::uint32_t hash = 0;
    std::uint32_t id = kNone;
  };
  std::vector<Cell> cells_;
  std::size_t mask_ = 0;
  std::size_t used_ = 0;
};

/// Interns names and never forgets them. Ids are dense, from 0. Not thread-safe. A string costs its size and some 24
/// bytes, a frame 24, a stack 4 per frame and some 20.
class Symbols {
 public:
  Symbols();
  Symbols(Symbols&&) = default;
  Symbols& operator=(Symbols&&) = default;

  /// Interns printable(text), because names come from files and go to files and terminals.
  StringId intern(std::string_view text);
  FrameId intern(const Frame& frame);
  /// Interns a stack, innermost frame first, as PyTorch writes them.
  StackId intern(std::span<const FrameId> frames);

  /// Views stay valid as long as this object lives.
  [[nodiscard]] std::string_view text(StringId id) const { return strings_[index_of(id)]; }
  [[nodiscard]] const Frame& frame(FrameId id) const { return frames_[index_of(id)]; }
  [[nodiscard]] std::string_view name(FrameId id) const { return text(frame(id).name); }
  [[nodiscard]] std::string_view file(FrameId id) const { return text(frame(id).file); }
  /// The frames of a stack. Valid until a stack is next interned.
  [[nodiscard]] std::span<const FrameId> stack(StackId id) const;

 private:
  std::string_view keep(std::string_view text);

  std::vector<std::unique_ptr<char[]>> pages_;
  std::size_t page_left_ = 0;
  char* page_at_ = nullptr;
  std::vector<std::string_view> strings_;
  std::vector<Frame> frames_;
  std::vector<FrameId> stack_frames_;
  std::vector<std::size_t> stack_begins_;
  IdTable string_ids_;
  IdTable frame_ids_;
  IdTable stack_ids_;
};

}  // namespace vramtrack::trace

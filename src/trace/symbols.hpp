// Symbols: the names of an allocation trace, each kept once: strings, frames, stacks. Two traces that are to be
// compared are read into one Symbols, so that the same stack has the same id in both.
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

/// No stack was recorded. Always the id of the empty list of frames.
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

/// Open-addressed table of ids by hash; the caller compares what the ids stand for. 8 to 16 bytes an id.
class IdTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  /// The id for which `same(id)` among those stored under `hash`, or kNone.
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

/// Interns; never forgets. Ids are dense, from 0. Not thread-safe. A string costs its bytes and some 24, a frame 24, a
/// stack 4 a frame and some 20.
class Symbols {
 public:
  Symbols();
  Symbols(Symbols&&) = default;
  Symbols& operator=(Symbols&&) = default;

  /// Of printable(text): names come out of files and go into files and terminals.
  StringId intern(std::string_view text);
  FrameId intern(const Frame& frame);
  /// Innermost frame first, as PyTorch writes them.
  StackId intern(std::span<const FrameId> frames);

  /// Views stay valid as long as this object lives.
  [[nodiscard]] std::string_view text(StringId id) const { return strings_[index_of(id)]; }
  [[nodiscard]] const Frame& frame(FrameId id) const { return frames_[index_of(id)]; }
  [[nodiscard]] std::string_view name(FrameId id) const { return text(frame(id).name); }
  [[nodiscard]] std::string_view file(FrameId id) const { return text(frame(id).file); }
  /// Valid until the next intern of a stack.
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

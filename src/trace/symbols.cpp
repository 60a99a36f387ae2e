#include "trace/symbols.hpp"

#include <algorithm>
#include <cstring>

#include "core/printable.hpp"
#include "trace/hash.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kPageBytes = 64 * 1024;

std::uint32_t hash_of(const char* bytes, std::size_t size) {
  const std::uint64_t secret = hash_seed();
  std::uint64_t hash = size * 0xff51afd7ed558ccdULL ^ secret;
  while (size >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    hash = mixed((hash ^ word) * secret);
    bytes += 8;
    size -= 8;
  }
  std::uint64_t rest = 0;
  // Avoid a null pointer, which the empty string and the empty stack have.
  if (size > 0) std::memcpy(&rest, bytes, size);
  return static_cast<std::uint32_t>(mixed((hash ^ rest) * secret));
}

}  // namespace

void IdTable::insert(std::uint32_t hash, std::uint32_t id) {
  if (used_ * 4 >= cells_.size() * 3) {
    std::vector<Cell> old(std::max<std::size_t>(64, cells_.size() * 2));
    old.swap(cells_);
    mask_ = cells_.size() - 1;
    for (const Cell& cell : old) {
      if (cell.id == kNone) continue;
      std::size_t at = cell.hash & mask_;
      while (cells_[at].id != kNone) at = (at + 1) & mask_;
      cells_[at] = cell;
    }
  }
  std::size_t at = hash & mask_;
  while (cells_[at].id != kNone) at = (at + 1) & mask_;
  cells_[at] = {hash, id};
  ++used_;
}

Symbols::Symbols() : stack_begins_{0} {
  intern(std::string_view{});
  intern(std::span<const FrameId>{});
}

std::string_view Symbols::keep(std::string_view text) {
  if (text.empty()) return {};
  if (text.size() > kPageBytes / 4) {
    pages_.push_back(std::make_unique_for_overwrite<char[]>(text.size()));
    std::memcpy(pages_.back().get(), text.data(), text.size());
    return {pages_.back().get(), text.size()};
  }
  if (text.size() > page_left_) {
    pages_.push_back(std::make_unique_for_overwrite<char[]>(kPageBytes));
    page_at_ = pages_.back().get();
    page_left_ = kPageBytes;
  }
  char* const at = page_at_;
  std::memcpy(at, text.data(), text.size());
  page_at_ += text.size();
  page_left_ -= text.size();
  return {at, text.size()};
}

StringId Symbols::intern(std::string_view text) {
  // Plain ASCII, which nearly all text is, needs no copy.
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!plain)
    if (std::string clean = printable(text); clean != text) return intern(clean);
  const std::uint32_t hash = hash_of(text.data(), text.size());
  const std::uint32_t known = string_ids_.find(hash, [&](std::uint32_t id) { return strings_[id] == text; });
  if (known != IdTable::kNone) return StringId{known};
  const auto id = static_cast<std::uint32_t>(strings_.size());
  strings_.push_back(keep(text));
  string_ids_.insert(hash, id);
  return StringId{id};
}

FrameId Symbols::intern(const Frame& frame) {
  const auto hash = static_cast<std::uint32_t>(
      mixed(mixed((std::uint64_t{index_of(frame.name)} << 32) | index_of(frame.file)) ^ frame.line));
  const std::uint32_t known = frame_ids_.find(hash, [&](std::uint32_t id) { return frames_[id] == frame; });
  if (known != IdTable::kNone) return FrameId{known};
  const auto id = static_cast<std::uint32_t>(frames_.size());
  frames_.push_back(frame);
  frame_ids_.insert(hash, id);
  return FrameId{id};
}

StackId Symbols::intern(std::span<const FrameId> frames) {
  const std::uint32_t hash = hash_of(reinterpret_cast<const char*>(frames.data()), frames.size_bytes());
  const std::uint32_t known = stack_ids_.find(hash, [&](std::uint32_t id) {
    const std::span<const FrameId> other = stack(StackId{id});
    return std::equal(other.begin(), other.end(), frames.begin(), frames.end());
  });
  if (known != IdTable::kNone) return StackId{known};
  const auto id = static_cast<std::uint32_t>(stack_begins_.size() - 1);
  stack_frames_.insert(stack_frames_.end(), frames.begin(), frames.end());
  stack_begins_.push_back(stack_frames_.size());
  stack_ids_.insert(hash, id);
  return StackId{id};
}

std::span<const FrameId> Symbols::stack(StackId id) const {
  const std::size_t begin = stack_begins_[index_of(id)];
  return {stack_frames_.data() + begin, stack_begins_[index_of(id) + 1] - begin};
}

}  // namespace vramtrack::trace

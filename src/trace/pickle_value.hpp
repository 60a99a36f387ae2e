// The values that a pickle's stack and memo hold during reading. No Python object is ever built: a container is a slot
// only while it is being filled, and then its result (a frame, a stack) or nothing at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack::trace {

enum class Tag : std::uint8_t {
  none,
  boolean,   ///< bits: 0 or 1
  integer,   ///< bits: two's complement; `negative` distinguishes -1 from 2^64-1
  real,      ///< bits: the double
  string,    ///< bits: StringId
  pair,      ///< bits: two integers of 32 bits, the first in the upper half
  open,      ///< bits: the slot of a container that is being filled
  frame,     ///< bits: FrameId
  stack,     ///< bits: StackId
  record,    ///< a container with contents already stored elsewhere; bits: 0 if it was empty
  repeated,  ///< the same, by reference from elsewhere
  item,      ///< bits: whatever the schema stored
  list,      ///< of no interest
  dict,      ///< of no interest
  opaque,    ///< of no interest, and not a container
};

struct Value {
  std::uint64_t bits = 0;
  Tag tag = Tag::none;
  bool negative = false;
};

/// The tag as words for errors, such as "an integer".
std::string_view tag_words(Tag tag);

/// The opcode's name ("GLOBAL", "REDUCE", ...); empty if the byte is not an opcode of protocols 0 to 5.
std::string_view opcode_name(std::uint8_t opcode);

/// A string of protocol 0 with its backslash escapes resolved, as UTF-8.
std::string unescaped(std::string_view text);

/// The pickle's memo: 4 bytes per entry, in pages created at the first write.
class Memo {
 public:
  enum Kind : std::uint32_t { absent, string, frame, stack, record, open, table, opaque };
  static constexpr std::uint32_t kMostIds = 1U << 29;
  struct Entry {
    Kind kind;
    std::uint32_t id;
  };

  [[nodiscard]] Entry get(std::uint64_t index) const {
    const std::uint64_t page = index / kPage;
    if (page >= pages_.size() || pages_[page] == nullptr) return {absent, 0};
    const std::uint32_t cell = pages_[page][index % kPage];
    return {static_cast<Kind>(cell >> 29), cell & (kMostIds - 1)};
  }
  /// Gets the usual target of a reference in one step: a string, frame, stack or record. If false, use get().
  [[nodiscard]] bool get_plain(std::uint64_t index, Value& out) const {
    static constexpr Tag kTags[] = {Tag::none, Tag::string, Tag::frame, Tag::stack, Tag::repeated};
    const std::uint64_t page = index / kPage;
    if (page >= pages_.size() || pages_[page] == nullptr) return false;
    const std::uint32_t cell = pages_[page][index % kPage];
    const std::uint32_t kind = cell >> 29;
    if (kind - 1 >= record) return false;
    out.bits = cell & (kMostIds - 1);
    out.tag = kTags[kind];
    return true;
  }
  void put(std::uint64_t index, Entry entry) {
    const std::uint64_t page = index / kPage;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) pages_[page] = std::make_unique<std::uint32_t[]>(kPage);
    pages_[page][index % kPage] = (static_cast<std::uint32_t>(entry.kind) << 29) | entry.id;
  }

 private:
  static constexpr std::uint64_t kPage = 16384;
  std::vector<std::unique_ptr<std::uint32_t[]>> pages_;
};

}  // namespace vramtrack::trace

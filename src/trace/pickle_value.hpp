// What a pickle's stack and memo hold while it is read. No Python object is ever built: a container is a slot only
// as long as it is filled, then what it came to (a frame, a stack) or nothing at all.
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
  real,      ///< bits: of the double
  string,    ///< bits: StringId
  pair,      ///< bits: two integers of 32 bits, the first above
  open,      ///< bits: slot of a container that is being filled
  frame,     ///< bits: FrameId
  stack,     ///< bits: StackId
  record,    ///< a container whose contents have gone where they belong; bits: 0 when it was empty
  repeated,  ///< the same, by reference from elsewhere
  item,      ///< bits: whatever the schema put there
  list,      ///< of no interest
  dict,      ///< of no interest
  opaque,    ///< of no interest, and no container
};

struct Value {
  std::uint64_t bits = 0;
  Tag tag = Tag::none;
  bool negative = false;
};

/// "an integer", for errors.
std::string_view tag_words(Tag tag);

/// "GLOBAL", "REDUCE" ...; empty for a byte that is not an opcode of protocols 0 to 5.
std::string_view opcode_name(std::uint8_t opcode);

/// Protocol 0's strings with their backslash escapes resolved, as UTF-8.
std::string unescaped(std::string_view text);

/// The pickle's memo: 4 bytes an entry, in pages that are made when first written to.
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
  /// What most references are to, in one step: a string, frame, stack or record. False: see get().
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

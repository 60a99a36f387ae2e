// Anchors: finds many fixed texts at once, in one pass over the input (Aho and Corasick, "Efficient string matching",
// CACM 18(6), 1975).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace vramtrack::explain {

/// A match of one text.
struct Hit {
  std::size_t end = 0;  ///< offset after its last byte
  std::uint32_t index = 0;
};

/// Immutable after the last add() and build(); then any thread may search. Case is ignored, and a run of blanks counts
/// as one space, as in Pattern.
class Anchors {
 public:
  /// `text` as Pattern::anchor() gives it; equal texts may be added several times. Indices count from 0.
  void add(std::string_view text);
  void build();

  /// All occurrences of all texts in `text`, ordered by their ends. O(text + hits).
  void find(std::string_view text, std::vector<Hit>& out) const;

 private:
  struct Node {
    std::uint32_t fallback = 0;
    std::uint32_t shorter = 0;  ///< the next node along the fallbacks that ends a text; 0: none
    std::vector<std::uint32_t> ends;
  };
  [[nodiscard]] std::uint32_t& step(std::uint32_t node, char c) {
    return steps_[node * class_count_ + classes_[static_cast<unsigned char>(c)]];
  }

  std::vector<std::string_view> texts_;
  std::array<std::uint8_t, 256> classes_{};  ///< class of a byte: bytes that occur in no text share 0
  std::size_t class_count_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> steps_;
};

}  // namespace vramtrack::explain

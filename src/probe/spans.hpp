// The used parts of a piece of memory if uses may overlap, as when an engine binds several images to the same place and
// uses one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe {

struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t uses = 0;
};

/// Disjoint spans in order: overlapping uses are one span until the last of them ends. Plain data, no lock; memory
/// comes from the system.
class Spans {
 public:
  /// Adds a use of [begin, end). Returns the newly used span; calls `replaced` for each span that it merges. A result
  /// with end 0 means no change: all of it was already in use (or there is no memory for more).
  template <class Replaced>
  Span add(std::uint64_t begin, std::uint64_t end, Replaced replaced) {
    std::size_t first = at(begin);
    std::size_t last = first;
    Span span{begin, end, 1};
    while (last < count_ && spans_[last].begin < end) ++last;
    if (last == first + 1 && spans_[first].begin <= begin && spans_[first].end >= end) {
      ++spans_[first].uses;
      return {};
    }
    for (std::size_t i = first; i < last; ++i) {
      if (spans_[i].begin < span.begin) span.begin = spans_[i].begin;
      if (spans_[i].end > span.end) span.end = spans_[i].end;
      span.uses += spans_[i].uses;
      replaced(spans_[i]);
    }
    if (last == first && !make_room()) return {};
    move(last, first + 1);
    spans_[first] = span;
    return span;
  }
  /// Ends the use that began at `begin`. Returns the span that is free now; end 0: it is still in use, or was unknown.
  Span remove(std::uint64_t begin);
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const Span& operator[](std::size_t i) const { return spans_[i]; }
  void clear();

 private:
  /// Index of the first span that ends after `begin`.
  [[nodiscard]] std::size_t at(std::uint64_t begin) const;
  bool make_room();
  /// Moves the elements from index `from` on to `to`.
  void move(std::size_t from, std::size_t to);

  Span* spans_ = nullptr;
  std::size_t count_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace vramtrack::probe

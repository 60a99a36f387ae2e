// The events of an allocator, one record each, whatever tool recorded them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "trace/symbols.hpp"

namespace vramtrack::trace {

enum class Action : std::uint8_t {
  alloc,           ///< the program got `size_bytes` at `address`
  free_requested,  ///< the program released it; a stream may still use it
  free_completed,  ///< it is now free
  segment_alloc,   ///< the allocator took a segment from the driver
  segment_free,    ///< the allocator returned a segment
  segment_map,     ///< an expandable segment grew
  segment_unmap,   ///< an expandable segment shrank
  snapshot,        ///< a snapshot was taken here
  oom,             ///< `size_bytes` were requested but not available; `address` is what the device had free
  annotate,        ///< the program described the live block at `address`; the words are its origin's `metadata`
  other,           ///< anything newer than this list
};
inline constexpr std::size_t kActionCount = 11;
inline constexpr std::array<std::string_view, kActionCount> kActionNames = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "snapshot",
    "oom",          "annotate",       "other"};

/// The recording has no times (PyTorch before 2.2).
inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

/// Origin numbers have this many bits.
inline constexpr std::uint32_t kOriginMask = (1U << 24) - 1;

struct AllocEvent {
  std::uint64_t address = 0;  ///< for an oom: bytes the device had free
  std::uint64_t size_bytes = 0;
  std::int64_t time_us = kNoTime;  ///< since 1970, UTC
  StackId stack = kNoStack;
  std::uint32_t origin : 24 = 0;  ///< index into Snapshot::origins
  Action action : 8 = Action::other;
};
static_assert(sizeof(AllocEvent) == 32);

/// Append-only, in pages: never copies its elements, so ten million events take only their own size.
template <class T, std::size_t kPage = 16384>
class Paged {
 public:
  Paged() = default;
  Paged(Paged&&) noexcept = default;
  Paged& operator=(Paged&&) noexcept = default;
  ~Paged() = default;
  /// Copies every page; only for tests and small objects.
  Paged(const Paged& other) : size_(other.size_) {
    for (const auto& page : other.pages_) pages_.push_back(std::make_unique<Page>(*page));
  }
  Paged& operator=(const Paged& other) {
    *this = Paged(other);
    return *this;
  }

  void push_back(const T& value) {
    if (size_ % kPage == 0) pages_.push_back(std::make_unique_for_overwrite<Page>());
    (*pages_.back())[size_++ % kPage] = value;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t at) const { return (*pages_[at / kPage])[at % kPage]; }
  [[nodiscard]] const T& back() const { return (*this)[size_ - 1]; }

 private:
  using Page = std::array<T, kPage>;
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t size_ = 0;
};

}  // namespace vramtrack::trace

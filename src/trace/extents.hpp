// Extents: which of a process's driver allocations back the blocks of an allocator, by address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace vramtrack::trace {

/// Driver allocations of device memory. They are kept from the first block on, since a process without blocks needs
/// none. Each call costs O(log n), and a block next to the previous one costs nothing.
class Extents {
 public:
  [[nodiscard]] bool are_kept() const { return are_kept_; }
  void keep() { are_kept_ = true; }
  void put(std::uint64_t address, std::uint64_t bytes) {
    if (are_kept_) extents_[address] = {bytes, 0};
  }
  void erase(std::uint64_t address) {
    if (!are_kept_) return;
    extents_.erase(address);
    if (was_found(address)) forget_found();
  }

  /// Calls `visit` with the address of each extent that contains part of the block, unless they were found by the last
  /// call. Growing segments are mapped piece by piece, so a block may span many pieces.
  template <class Visit>
  void find(std::uint64_t address, std::uint64_t bytes, Visit visit) {
    const std::uint64_t end = address + std::min(std::max<std::uint64_t>(bytes, 1), ~std::uint64_t{0} - address);
    if (address >= begin_ && end <= end_) return;
    auto at = extents_.upper_bound(address);
    if (at == extents_.begin()) return;
    --at;
    if (address - at->first >= at->second.bytes) return;
    begin_ = end_ = at->first;
    for (; at != extents_.end() && at->first < end; ++at) {
      if (at->first == end_) end_ += at->second.bytes;
      visit(at->first);
    }
  }
  /// Whether the address is within the extents that find() found last, which are backing.
  [[nodiscard]] bool was_found(std::uint64_t address) const { return address >= begin_ && address < end_; }
  void forget_found() { begin_ = 1, end_ = 0; }

  /// Records that the program itself put a live block there. REQUIRES: was_found().
  void bind(std::uint64_t address) { ++std::prev(extents_.upper_bound(address))->second.bound; }
  /// The address of the extent if this was the last block in it that the program put there.
  std::optional<std::uint64_t> unbind(std::uint64_t address) {
    auto at = extents_.upper_bound(address);
    if (at == extents_.begin()) return std::nullopt;
    --at;
    if (address - at->first >= at->second.bytes || at->second.bound == 0 || --at->second.bound > 0) return std::nullopt;
    return at->first;
  }

 private:
  struct Extent {
    std::uint64_t bytes = 0;
    std::uint64_t bound = 0;  ///< live blocks in it that the program itself put there
  };
  std::map<std::uint64_t, Extent> extents_;
  bool are_kept_ = false;
  std::uint64_t begin_ = 1, end_ = 0;  ///< the extents found last
};

}  // namespace vramtrack::trace

// Which addresses are in use, and what for.
#include <sys/mman.h>

#include <map>

#include "driver.hpp"

namespace fake_gpu {
namespace {

/// By the beginning. Never destroyed: PyTorch frees memory from its own static destructors.
std::map<std::uint64_t, Range>& ranges() {
  static auto& all = *new std::map<std::uint64_t, Range>;
  return all;
}

std::uint64_t host_pages(std::uint64_t bytes) {
  return (bytes + kHostPage - 1) / kHostPage * kHostPage;
}

}  // namespace

Range* find_range(std::uint64_t address) {
  auto after = ranges().upper_bound(address);
  if (after == ranges().begin()) return nullptr;
  Range& range = std::prev(after)->second;
  return address < range.end ? &range : nullptr;
}

Range& add_range(std::uint64_t begin, std::uint64_t bytes, Kind kind, int device) {
  Range& range = ranges()[begin];
  range = {};
  range.begin = begin;
  range.end = begin + bytes;
  range.kind = kind;
  range.device = device;
  return range;
}

Range* range_of(const Context* context) {
  for (auto& [begin, range] : ranges())
    if (range.context == context) return &range;
  return nullptr;
}

void erase_range(const Range& range) {
  ranges().erase(range.begin);
}

std::uint64_t map_addresses(std::uint64_t bytes, std::uint64_t align, int protection) {
  const std::uint64_t wanted = host_pages(bytes);
  const std::uint64_t room = align > kHostPage ? wanted + align : wanted;
  void* mapped = mmap(nullptr, room, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return 0;
  const auto first = reinterpret_cast<std::uint64_t>(mapped);
  const std::uint64_t begin = align > kHostPage ? (first + align - 1) / align * align : first;
  if (begin > first) unmap_addresses(first, begin - first);
  if (const std::uint64_t tail = first + room - (begin + wanted); tail != 0) unmap_addresses(begin + wanted, tail);
  return begin;
}

void unmap_addresses(std::uint64_t begin, std::uint64_t bytes) {
  munmap(reinterpret_cast<void*>(begin), host_pages(bytes));
}

}  // namespace fake_gpu

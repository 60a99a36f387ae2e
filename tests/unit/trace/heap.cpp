#include "heap.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> held_bytes{0};
std::atomic<std::uint64_t> most_bytes{0};

void* take_or_null(std::size_t bytes) {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) return nullptr;
  const std::uint64_t now = held_bytes += malloc_usable_size(memory);
  std::uint64_t most = most_bytes;
  while (now > most && !most_bytes.compare_exchange_weak(most, now)) continue;
  return memory;
}

void* take(std::size_t bytes) {
  void* const memory = take_or_null(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give_back(void* memory) {
  if (memory != nullptr) held_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return take(bytes);
}
void* operator new[](std::size_t bytes) {
  return take(bytes);
}
// Replace all of a kind or none: a sanitizer that still has one of them sees memory released to another one.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return take_or_null(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return take_or_null(bytes);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete[](void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  give_back(memory);
}

namespace vramtrack::trace::test {

HeapPeak::HeapPeak() : begin_bytes_(held_bytes) {
  most_bytes = begin_bytes_;
}

std::uint64_t HeapPeak::bytes() const {
  return most_bytes - std::min(begin_bytes_, most_bytes.load());
}

}  // namespace vramtrack::trace::test

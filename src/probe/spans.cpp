#include "probe/spans.hpp"

#include <algorithm>
#include <cstring>

#include "probe/self.hpp"

namespace vramtrack::probe {

std::size_t Spans::at(std::uint64_t begin) const {
  return static_cast<std::size_t>(
      std::upper_bound(spans_, spans_ + count_, begin, [](std::uint64_t b, const Span& span) { return b < span.end; }) -
      spans_);
}

bool Spans::make_room() {
  if (count_ < capacity_) return true;
  const std::size_t capacity = capacity_ == 0 ? 4096 / sizeof(Span) : capacity_ * 2;
  auto* larger = static_cast<Span*>(reserve(capacity * sizeof(Span)));
  if (larger == nullptr) return false;
  if (count_ > 0) std::memcpy(static_cast<void*>(larger), spans_, count_ * sizeof(Span));
  give_back(spans_, capacity_ * sizeof(Span));
  spans_ = larger;
  capacity_ = capacity;
  return true;
}

void Spans::move(std::size_t from, std::size_t to) {
  std::memmove(static_cast<void*>(spans_ + to), spans_ + from, (count_ - from) * sizeof(Span));
  count_ += to - from;
}

Span Spans::remove(std::uint64_t begin) {
  const std::size_t index = at(begin);
  if (index == count_ || spans_[index].begin > begin || --spans_[index].uses > 0) return {};
  const Span span = spans_[index];
  move(index + 1, index);
  return span;
}

void Spans::clear() {
  give_back(spans_, capacity_ * sizeof(Span));
  spans_ = nullptr;
  count_ = capacity_ = 0;
}

}  // namespace vramtrack::probe

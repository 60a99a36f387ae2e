#include "detect/history.hpp"

#include <algorithm>

#include "detect/ring.hpp"

namespace vramtrack {

void History::observe(Timestamp time, double bytes) {
  if (spans_.empty()) first_ = time;
  const auto value = static_cast<float>(bytes);
  std::int64_t slot = (time - first_) / width_;
  if (!spans_.empty() && spans_.back().slot >= slot) {
    Span& span = spans_.back();
    span.min_bytes = std::min(span.min_bytes, value);
    span.max_bytes = std::max(span.max_bytes, value);
    ++span.samples;
    span.mean_bytes += (value - span.mean_bytes) / static_cast<float>(span.samples);
    return;
  }
  while (spans_.size() == kCapacity) {
    halve();
    slot = (time - first_) / width_;
    if (spans_.back().slot >= slot) return observe(time, bytes);
  }
  reserve_one_more(spans_, kCapacity);
  spans_.push_back({slot, value, value, value, 1});
}

void History::halve() {
  width_ *= 2;
  std::size_t out = 0;
  for (Span span : spans_) {  // a copy: `out` never passes it
    span.slot /= 2;
    if (out > 0 && spans_[out - 1].slot == span.slot) {
      Span& into = spans_[out - 1];
      const std::uint32_t samples = into.samples + span.samples;
      into.min_bytes = std::min(into.min_bytes, span.min_bytes);
      into.max_bytes = std::max(into.max_bytes, span.max_bytes);
      into.mean_bytes +=
          (span.mean_bytes - into.mean_bytes) * static_cast<float>(span.samples) / static_cast<float>(samples);
      into.samples = samples;
    } else {
      spans_[out++] = span;
    }
  }
  spans_.resize(out);
}

std::optional<History::Span> History::at(Timestamp time) const {
  if (spans_.empty() || time < first_) return std::nullopt;
  const std::int64_t slot = (time - first_) / width_;
  auto it = std::upper_bound(spans_.begin(), spans_.end(), slot,
                             [](std::int64_t s, const Span& span) { return s < span.slot; });
  return *(it - 1);
}

}  // namespace vramtrack

#include "detect/distributions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/median.hpp"

namespace vramtrack {
namespace {

/// Long enough for a server's bursts to repeat within a block, short enough for a day to have many blocks.
constexpr Duration kBlock = std::chrono::minutes{10};
/// A block with fewer samples has no meaningful second percentile.
constexpr std::size_t kLeastSamples = 10;
/// Beyond this many samples, every second one is dropped: the quantiles of a block need no more.
constexpr std::size_t kMostSamples = 128;
/// Later blocks are compared with the median of this many first blocks.
constexpr std::size_t kReferenceBlocks = 5;

Distributions::Quantiles quantiles_of(std::vector<float>& samples) {
  Distributions::Quantiles all{};
  std::sort(samples.begin(), samples.end());
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<double>(samples[static_cast<std::size_t>(
        std::lround(Distributions::kQuantiles[i] * static_cast<double>(samples.size() - 1)))]);
  return all;
}

Distributions::Quantiles median_of(const std::vector<Distributions::Quantiles>& blocks) {
  Distributions::Quantiles median{};
  for (std::size_t q = 0; q < median.size(); ++q) {
    std::vector<double> of;
    for (const Distributions::Quantiles& block : blocks) of.push_back(block[q]);
    median[q] = upper_median(std::span(of));
  }
  return median;
}

}  // namespace

std::optional<double> Distributions::observe(Timestamp time, double used_bytes) {
  std::optional<double> shift;
  if (open_ && time - begin_ >= kBlock) {
    shift = close();
    open_ = false;
  }
  if (!open_) {
    begin_ = time;
    open_ = true;
    samples_.clear();
    stride_ = 1;
    seen_ = 0;
  }
  if (seen_++ % stride_ != 0) return shift;
  samples_.push_back(static_cast<float>(used_bytes));
  if (samples_.size() < kMostSamples) return shift;
  for (std::size_t i = 0; 2 * i < samples_.size(); ++i) samples_[i] = samples_[2 * i];
  samples_.resize(samples_.size() / 2);
  stride_ *= 2;
  return shift;
}

std::optional<double> Distributions::close() {
  if (samples_.size() < kLeastSamples) return std::nullopt;
  const Quantiles block = quantiles_of(samples_);
  if (!reference_) {
    first_.push_back(block);
    if (first_.size() < kReferenceBlocks) return std::nullopt;
    reference_ = median_of(first_);
    first_ = {};
    return std::nullopt;
  }
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t q = 0; q < block.size(); ++q) least = std::min(least, block[q] - (*reference_)[q]);
  return (*reference_)[0] + least;
}

}  // namespace vramtrack

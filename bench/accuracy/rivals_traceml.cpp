// TraceML's memory creep (diagnostics/step_memory): the averages of three bands of the history must rise.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "rivals_parts.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr std::size_t kHistory = 10'000;
constexpr std::size_t kLeastSteps = 50;
constexpr double kConfirmedBytes = 1024 * kMiB;

/// Running sums, so that a band's average costs two reads; 80 KiB. Sums are of the rise above the first sample: over a
/// million samples they stay exact to well under a byte a sample.
class TraceMl final : public Rival {
 public:
  void observe(double t_s, double used_bytes) override {
    if (steps_ == 0) first_bytes_ = used_bytes;
    if (steps_ == 0 || t_s > last_t_s_) ++steps_;
    last_t_s_ = t_s;
    sum_at(steps_) = sum_at(steps_ - 1) + (used_bytes - first_bytes_);
    alarming_ = confirmed();
  }

  [[nodiscard]] bool alarming() const override { return alarming_; }

 private:
  [[nodiscard]] double& sum_at(std::size_t step) { return sums_[step % sums_.size()]; }
  [[nodiscard]] double sum_at(std::size_t step) const { return sums_[step % sums_.size()]; }

  /// From one share of the history to another.
  [[nodiscard]] double average(double from, double to) const {
    const std::size_t size = std::min(steps_, kHistory);
    const std::size_t begin =
        std::min(static_cast<std::size_t>(std::floor(static_cast<double>(size) * from)), size - 1);
    const std::size_t end =
        std::clamp(static_cast<std::size_t>(std::ceil(static_cast<double>(size) * to)), begin + 1, size);
    const std::size_t oldest = steps_ - size;
    return (sum_at(oldest + end) - sum_at(oldest + begin)) / static_cast<double>(end - begin);
  }

  [[nodiscard]] bool confirmed() const {
    if (steps_ < kLeastSteps) return false;
    const double baseline = average(0.15, 0.25);
    const double mid = average(0.45, 0.55);
    const double recent = average(0.90, 1.00);
    return recent > mid && mid > baseline && recent - baseline >= kConfirmedBytes;
  }

  std::array<double, kHistory + 1> sums_{};  ///< of the first n steps, at n modulo its size
  std::size_t steps_ = 0;
  double first_bytes_ = 0;
  double last_t_s_ = 0;
  bool alarming_ = false;
};

}  // namespace

std::unique_ptr<Rival> make_traceml(double /*capacity_bytes*/) {
  return std::make_unique<TraceMl>();
}

}  // namespace vramtrack::accuracy

// gpumemprof (now stormlog), stormlog/analyzer.py: the Memory Growth Trend over all that was recorded, and the
// memory_leak pattern of its documentation, both with samples in the place of calls.
#include <cmath>

#include "core/statistics.hpp"
#include "detect/regression.hpp"
#include "rivals_parts.hpp"

namespace vramtrack::accuracy {
namespace {

/// From here on |r| > 0.5 alone makes p < 0.05: t = r sqrt((n - 2) / (1 - r^2)) > 2.30 and its critical value is 2.12.
constexpr double kSurelySignificant = 18;

class GrowthTrend final : public Rival {
 public:
  void observe(double t_s, double used_bytes) override {
    if (!started_) first_t_s_ = t_s;
    // The last sample stays out of the sums until the next: it may be replaced.
    if (started_ && t_s > last_.t_s) past_.add(last_.t_s - first_t_s_, last_.y);
    started_ = true;
    last_ = {t_s, used_bytes};
    Moments all = past_;
    all.add(t_s - first_t_s_, used_bytes);
    alarming_ = significant(all);
  }

  [[nodiscard]] bool alarming() const override { return alarming_; }

 private:
  static bool significant(const Moments& all) {
    if (all.n < 5) return false;
    const Fit fit = fit_slope(all);
    if (fit.slope_per_s <= 0 || fit.r_squared <= 0.25) return false;
    if (all.n >= kSurelySignificant || fit.r_squared >= 1) return true;
    const double t = std::sqrt(fit.r_squared * (all.n - 2) / (1 - fit.r_squared));
    return 2 * (1 - students_t_cdf(t, all.n - 2)) < 0.05;
  }

  bool started_ = false;
  double first_t_s_ = 0;
  Reading last_;
  Moments past_;
  bool alarming_ = false;
};

class LeakPattern final : public Rival {
 public:
  void observe(double t_s, double used_bytes) override {
    if (!started_) first_bytes_ = previous_bytes_ = used_bytes;
    if (started_ && t_s > last_.t_s) {
      past_rises_ += last_.y > previous_bytes_ ? 1 : 0;
      previous_bytes_ = last_.y;
      differences_ += 1;
    }
    if (started_ && differences_ == 0) first_bytes_ = previous_bytes_ = used_bytes;  // the first is replaced
    started_ = true;
    last_ = {t_s, used_bytes};
    const double rises = past_rises_ + (used_bytes > previous_bytes_ ? 1 : 0);
    alarming_ = differences_ >= 3 && rises > 0.1 * differences_ && used_bytes - first_bytes_ > 100 * kMiB;
  }

  [[nodiscard]] bool alarming() const override { return alarming_; }

 private:
  bool started_ = false;
  Reading last_;
  double first_bytes_ = 0;
  double previous_bytes_ = 0;  ///< the sample before the last
  double differences_ = 0;     ///< the last sample's included
  double past_rises_ = 0;      ///< the last sample's not included
  bool alarming_ = false;
};

}  // namespace

std::unique_ptr<Rival> make_gpumemprof_trend(double /*capacity_bytes*/) {
  return std::make_unique<GrowthTrend>();
}

std::unique_ptr<Rival> make_gpumemprof_leak(double /*capacity_bytes*/) {
  return std::make_unique<LeakPattern>();
}

}  // namespace vramtrack::accuracy

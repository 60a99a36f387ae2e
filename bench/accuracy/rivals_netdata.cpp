// Netdata's disk_fill_rate and out_of_disk_space_time (src/health/health.d/disks.conf), with memory for disk: the rate
// from the least free of the ten minutes that ended 50 minutes ago to what is free now, over the hour between.
#include <algorithm>
#include <deque>

#include "rivals_parts.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kBucketSeconds = 10;
constexpr double kHour = 3600;
constexpr double kWindowBeginsSeconds = 60 * 60;
constexpr double kWindowEndsSeconds = 50 * 60;
constexpr double kWarnHours = 8;
constexpr double kClearHours = 48;

/// Memory is 360 buckets of ten seconds.
class Netdata final : public Polled {
 public:
  explicit Netdata(double capacity_bytes) : capacity_bytes_(capacity_bytes) {}

 private:
  struct Bucket {
    std::int64_t slot = 0;
    double least_free_bytes = 0;
  };

  void take(double t_s, double used_bytes, bool replaces) override {
    // The last sample stays out of the buckets until the next: it may be replaced.
    if (last_ && !replaces) {
      const std::int64_t slot = slot_of(last_->t_s, kBucketSeconds);
      if (buckets_.empty() || buckets_.back().slot < slot) buckets_.push_back({slot, last_->y});
      buckets_.back().least_free_bytes = std::min(buckets_.back().least_free_bytes, last_->y);
    }
    last_ = Reading{t_s, capacity_bytes_ - used_bytes};
    const std::int64_t oldest = slot_of(t_s - kWindowBeginsSeconds, kBucketSeconds);
    while (!buckets_.empty() && buckets_.front().slot < oldest) buckets_.pop_front();
  }

  Alarm evaluate(double t_s, double used_bytes, const Alarm& before) override {
    std::optional<double> then_bytes;
    const std::int64_t end = slot_of(t_s - kWindowEndsSeconds, kBucketSeconds);
    for (const Bucket& bucket : buckets_) {
      if (bucket.slot >= end) break;
      then_bytes = std::min(then_bytes.value_or(bucket.least_free_bytes), bucket.least_free_bytes);
    }
    if (!then_bytes) return {};
    const double free_bytes = capacity_bytes_ - used_bytes;
    const double bytes_per_h = (*then_bytes - free_bytes) / (kWindowBeginsSeconds / kHour);
    if (bytes_per_h <= 0) return {};
    const double hours = free_bytes / bytes_per_h;
    if (hours <= 0 || hours >= (before.on ? kClearHours : kWarnHours)) return {};
    return {.on = true, .true_since_s = std::nullopt, .full_at_s = t_s + hours * kHour};
  }

  const double capacity_bytes_;
  std::optional<Reading> last_;  ///< y: free bytes
  std::deque<Bucket> buckets_;
};

}  // namespace

std::unique_ptr<Rival> make_netdata(double capacity_bytes) {
  return std::make_unique<Netdata>(capacity_bytes);
}

}  // namespace vramtrack::accuracy

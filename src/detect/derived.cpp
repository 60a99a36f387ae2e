#include "detect/derived.hpp"

namespace vramtrack {

void Derived::observe(Timestamp time, double bytes, std::optional<double> limit_bytes, bool means_something) {
  judge_->set_limit(limit_bytes);
  judge_->observe(time, bytes);
  suspects_ = judge_->suspecting() && (suspects_ || means_something);
  alerts_ = judge_->alerting() && (alerts_ || means_something);
}

}  // namespace vramtrack

#include "detect/trend_window.hpp"

#include <algorithm>

namespace vramtrack {

TrendWindow::TrendWindow(double window_s)
    : window_s_(window_s), width_(std::max(from_seconds(window_s / static_cast<double>(kBuckets)), Duration{1})) {}

void TrendWindow::clear() {
  *this = TrendWindow(window_s_);
}

void TrendWindow::observe(Timestamp time, double y) {
  if (!has_pending_) {
    origin_ = time;
    slot_end_ = time + width_;
    has_pending_ = true;
  } else if (time > pending_time_) {
    commit_pending();
  }
  pending_time_ = time;
  pending_y_ = y;
  if (time < slot_end_) return;  // so that a division and an eviction occur only once per bucket
  pending_slot_ = (time - origin_) / width_;
  slot_end_ = origin_ + width_ * (pending_slot_ + 1);
  evict_before(pending_slot_ - kBuckets);
}

void TrendWindow::commit_pending() {
  if (open_.moments.n > 0 && pending_slot_ != open_.slot) close_open();
  if (open_.moments.n == 0) {
    open_.slot = pending_slot_;
    open_.first = pending_time_;
  }
  if (has_committed_)
    open_.moments.add_step(seconds_between(committed_time_, pending_time_), pending_y_ - committed_y_);
  open_.moments.add(at(pending_time_), pending_y_);
  committed_time_ = pending_time_;
  committed_y_ = pending_y_;
  has_committed_ = true;
}

void TrendWindow::close_open() {
  back_.merge(open_.moments);
  closed_n_ += open_.moments.n;
  closed_.push_back(open_);
  open_ = Bucket{};
}

/// The back becomes the front: suffix sums from its newest bucket to its oldest.
void TrendWindow::turn_over() {
  // Anything before this now stays before it: both ends of the window only move forward.
  const Timestamp from = recent_from();
  suffix_.clear();
  std::size_t recent = 0;
  while (recent < closed_.size() && closed_[closed_.size() - 1 - recent].first >= from) ++recent;
  suffix_.reserve(recent);
  Moments sum;
  for (std::size_t i = closed_.size(); i-- > 0;) {
    sum.merge(closed_[i].moments);
    if (closed_[i].first >= from)
      suffix_.push_back(sum);
    else
      closed_[i].moments = sum;
  }
  front_ = closed_.size();
  back_ = Moments{};
}

Moments TrendWindow::front_sum() const {
  if (front_ == 0) return {};
  return front_ > suffix_.size() ? closed_.front().moments : suffix_.back();
}

void TrendWindow::evict_before(std::int64_t slot) {
  while (!closed_.empty() && closed_.front().slot < slot) {
    if (front_ == 0) turn_over();
    const double before_n = front_sum().n;
    if (front_ == suffix_.size()) suffix_.pop_back();
    closed_.pop_front();
    --front_;
    closed_n_ -= before_n - front_sum().n;  // counts: exact
  }
  if (open_.moments.n > 0 && open_.slot < slot) {  // after a gap longer than the window
    open_ = Bucket{};
    has_committed_ = false;
  }
}

Moments TrendWindow::all() const {
  Moments sum = front_sum();
  sum.merge(back_);
  sum.merge(open_.moments);
  if (has_pending_) {
    if (has_committed_) sum.add_step(seconds_between(committed_time_, pending_time_), pending_y_ - committed_y_);
    sum.add(at(pending_time_), pending_y_);
  }
  return sum;
}

Moments TrendWindow::recent() const {
  Moments sum;
  if (!has_pending_) return sum;
  const Timestamp from = recent_from();
  for (std::size_t i = closed_.size(); i-- > 0 && closed_[i].first >= from;) sum.merge(closed_[i].moments);
  sum.merge(open_.moments);
  sum.add(at(pending_time_), pending_y_);
  return sum;
}

Timestamp TrendWindow::first() const {
  if (!closed_.empty()) return closed_.front().first;
  return open_.moments.n > 0 ? open_.first : pending_time_;
}

}  // namespace vramtrack

#include "engine/device_runs.hpp"

#include <algorithm>
#include <utility>

namespace vramtrack {
namespace {

/// A reading counts as at the floor if it is above it by at most 1 / kAtFloorOneIn of the least growth.
constexpr std::uint64_t kAtFloorOneIn = 4;

}  // namespace

std::optional<Timestamp> first_alert_of(const Run& run, const std::vector<Alert>& alerts) {
  for (const Alert& a : alerts)
    if (a.finding.leak && a.ended != AlertEnd::withdrawn && a.raised >= run.begin && (!run.end || a.raised <= *run.end))
      return a.raised;
  return std::nullopt;
}

bool DeviceRuns::read(Timestamp time, std::uint64_t bytes, const Levels& levels, const std::optional<End>& last_end) {
  const bool used = static_cast<double>(bytes) > levels.idle_bytes;
  const Timestamp prior = prior_;
  prior_ = time;
  if (goes_on()) {
    Run& run = runs_.back();
    run.peak_bytes = std::max(run.peak_bytes, bytes);
    if (used) {
      note_rise(time, bytes);
      lowest_bytes_ = std::min(lowest_bytes_, bytes);
      if (seconds_between(run.begin, time) <= levels.release_s)
        loaded_bytes_ = lowest_loaded_bytes_ = bytes;
      else
        lowest_loaded_bytes_ = std::min(lowest_loaded_bytes_, bytes);
      return false;
    }
    End end;
    end.time = prior;
    if (last_end && last_end->time >= run.begin) end = *last_end;
    close(end, time, bytes);
    return false;
  }
  if (!between_) {
    // The first reading of all: whatever is in use may have been there for a long time.
    if (used) {
      begin(time, bytes);
      return true;
    }
    between_ = Between{time, bytes, 1, {}};
    return false;
  }
  Between& between = *between_;
  if (bytes <= between.floor_bytes + levels.no_growth_bytes / kAtFloorOneIn || !used) {
    if (bytes + levels.no_growth_bytes < between.floor_bytes) between.since = time;  // more was released
    between.floor_bytes = used ? std::min(between.floor_bytes, bytes) : bytes;
    between.risen.reset();
    ++between.readings;
  } else if (!between.risen) {
    between.risen = time;
  }
  if (!used) return false;
  const bool is_new = !runs_.empty() && came_ && *came_ > *runs_.back().end;
  const bool rises = bytes > between.floor_bytes + levels.no_growth_bytes;
  const bool was_idle = static_cast<double>(between.floor_bytes) <= levels.idle_bytes;
  const bool at_once = !runs_.empty() && !listed_ && somebody_stayed(levels);
  const bool released = !runs_.empty() && seconds_between(*runs_.back().end, time) > levels.release_s;
  std::optional<Timestamp> from;
  if (is_new)
    from = came_;
  else if (at_once && (rises || released))
    from = between.since;
  else if (rises && (!listed_ || runs_.empty() || was_idle))
    from = between.risen.value_or(time);
  if (!from) return false;
  // A single reading at the floor may already be the next run's first.
  if (between.risen && !at_once && (between.readings > 1 || was_idle)) rest_bytes_ = between.floor_bytes;
  begin(*from, at_once ? between.floor_bytes : bytes);
  runs_.back().peak_bytes = std::max(runs_.back().peak_bytes, bytes);
  return true;
}

/// Whether more is left after a run's end than was there before it: the next run was then already there.
bool DeviceRuns::somebody_stayed(const Levels& levels) const {
  const std::uint64_t floor = between_->floor_bytes;
  return rest_bytes_ ? floor > *rest_bytes_ + levels.no_growth_bytes : floor + levels.no_growth_bytes >= first_bytes_;
}

void DeviceRuns::begin(Timestamp time, std::uint64_t bytes) {
  Run run;
  run.begin = time;
  run.peak_bytes = bytes;
  runs_.push_back(run);
  if (runs_.size() > kMaxRuns) runs_.erase(runs_.begin());
  between_.reset();
  came_.reset();
  first_bytes_ = lowest_bytes_ = loaded_bytes_ = lowest_loaded_bytes_ = last_bytes_ = bytes;
  rise_bytes_ = prior_rise_bytes_ = 0;
  rise_until_ = time;
}

/// Keeps the largest recent rise: of a stretch as long as the run was when that began, and of the one before.
void DeviceRuns::note_rise(Timestamp time, std::uint64_t bytes) {
  if (time > rise_until_) {
    rise_until_ = time + (time - runs_.back().begin);
    prior_rise_bytes_ = std::exchange(rise_bytes_, 0);
  }
  if (bytes > last_bytes_) rise_bytes_ = std::max(rise_bytes_, bytes - last_bytes_);
  last_bytes_ = bytes;
}

std::optional<Precedent> DeviceRuns::precedent() const {
  Precedent found;
  std::vector<double> rates;
  for (const Run& run : runs_) {
    if (!run.end || seconds_between(run.begin, *run.end) < kReported_s) continue;
    ++found.ended;
    if (run.how != EndKind::out_of_memory || run.growth_bytes_per_s.value_or(0) <= 0) continue;
    ++found.ran_out;
    rates.push_back(*run.growth_bytes_per_s);
  }
  if (rates.empty()) return std::nullopt;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  found.growth_bytes_per_s = *middle;
  return found;
}

void DeviceRuns::came(Timestamp time) {
  listed_ = true;
  came_ = time;
}

bool DeviceRuns::close(const End& end, Timestamp gone_at, std::uint64_t left_bytes) {
  if (!goes_on() || end.time < runs_.back().begin) return false;
  Run& run = runs_.back();
  run.end = end.time;
  run.how = end.how;
  run.pid = end.pid;
  run.growth_bytes_per_s = end.growth_bytes_per_s;
  run.onset = end.onset;
  between_ = Between{gone_at, left_bytes, 0, {}};
  return true;
}

}  // namespace vramtrack

#include "source/ticks.hpp"

namespace vramtrack {

bool Ticks::hand_over(const Take& take) {
  const bool go_on = take(tick_, time_);
  tick_.clear();
  return go_on;
}

bool Ticks::add(const Batch& batch, const Take& take) {
  std::size_t next_event = 0;
  const auto events_until = [&](Timestamp time) {
    while (next_event < batch.events.size() && batch.events[next_event].time <= time)
      tick_.events.push_back(batch.events[next_event++]);
  };
  std::size_t next_reading = 0;
  std::size_t next_load = 0;
  std::size_t next_progress = 0;
  const auto readings_until = [&](Timestamp time) {
    for (; next_reading < batch.readings.size() && batch.readings[next_reading].time <= time; ++next_reading)
      tick_.readings.push_back(batch.readings[next_reading]);
    for (; next_load < batch.loads.size() && batch.loads[next_load].time <= time; ++next_load)
      tick_.loads.push_back(batch.loads[next_load]);
    for (; next_progress < batch.progress.size() && batch.progress[next_progress].time <= time; ++next_progress)
      tick_.progress.push_back(batch.progress[next_progress]);
  };
  for (const Sample& sample : batch.samples) {
    const bool is_full = tick_.samples.size() >= kMostOfATick || tick_.events.size() >= kMostOfATick;
    if (!tick_.samples.empty() && (sample.time != time_ || is_full)) {
      readings_until(time_);
      if (!hand_over(take)) return false;
    }
    time_ = sample.time;
    events_until(time_);
    tick_.samples.push_back(sample);
  }
  readings_until(Timestamp::max());
  if (next_event == batch.events.size()) return true;
  // Events after the last sample do not belong to its tick; only the instant before them is complete.
  if (!tick_.samples.empty() && !hand_over(take)) return false;
  time_ = batch.events.back().time;
  events_until(Timestamp::max());
  return hand_over(take);
}

bool Ticks::finish(const Take& take) {
  return tick_.samples.empty() && tick_.events.empty() ? true : hand_over(take);
}

}  // namespace vramtrack

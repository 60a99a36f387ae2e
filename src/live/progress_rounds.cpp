#include "live/progress_rounds.hpp"

namespace vramtrack {

bool ProgressRounds::add(const Catalog& catalog, Timestamp now, Batch& batch) {
  // The clock may have been set back.
  if (config_.minutes <= 0 || (now < next_ && now >= last_)) return false;
  held_bytes_.clear();
  for (const Sample& sample : batch.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    if (key.metric == Metric::process_used && key.pid != 0 && key.pid_start_ticks != 0 && key.host.empty())
      held_bytes_[{key.pid, key.pid_start_ticks}] += sample.bytes;
  }
  const double least_bytes = config_.min_memory_bytes();
  asked_.clear();
  for (const auto& [process, bytes] : held_bytes_) {
    const ProcessInfo* const info = catalog.process(process.first, process.second);
    if (info != nullptr && static_cast<double>(bytes) >= least_bytes) asked_.push_back(*info);
  }
  reader_.read(asked_, now, batch.progress);
  if (is_held_)
    for (ProgressReading& reading : batch.progress)
      reading.progress.held_by_policy = is_held_(reading.pid, reading.pid_start_ticks);
  last_ = now;
  next_ = now + from_seconds(config_.look_s());
  return true;
}

}  // namespace vramtrack

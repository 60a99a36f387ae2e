#include "source/tick_reader.hpp"

#include <fmt/format.h>

#include <iterator>

#include "core/format.hpp"

namespace vramtrack {
bool starts_anew(const Event& event) {
  return event.kind == Event::Kind::watch_started && !event.went_on;
}

Tick* TickReader::next() {
  const auto take = [this](Batch& tick, Timestamp time) {
    keep(tick, time);
    return true;
  };
  while (next_ == waiting_ && !at_end_) {
    next_ = waiting_ = 0;
    stretch_.clear();
    const Result<Progress> polled = source_.poll({}, stretch_);
    if (!polled) broken_ = polled.error();
    ticks_.add(stretch_, take);
    at_end_ = !polled || *polled == Progress::end;
    if (at_end_) ticks_.finish(take);
  }
  return next_ == waiting_ ? nullptr : &queue_[next_++];
}

/// Anything that happened before the instant at which another watch begins belongs to the previous watch.
void TickReader::keep(Batch& tick, Timestamp time) {
  auto from = tick.events.begin();
  for (auto at = from; at != tick.events.end(); ++at) {
    if (at == from || !starts_anew(*at)) continue;
    Batch part;
    part.events.assign(std::make_move_iterator(from), std::make_move_iterator(at));
    push(part, from->time);
    from = at;
  }
  tick.events.erase(tick.events.begin(), from);
  push(tick, time);
}

/// Swaps the batch for the memory of a tick that is no longer needed.
void TickReader::push(Batch& batch, Timestamp time) {
  if (waiting_ == queue_.size()) queue_.emplace_back();
  Tick& tick = queue_[waiting_++];
  tick.time = time;
  tick.batch.clear();
  tick.batch.swap(batch);
  tick.starts_anew = any_ && !tick.batch.events.empty() && starts_anew(tick.batch.events.front());
  any_ = true;
}

std::string extent_words(const TicksRead& read, const TimeRange& range, const Catalog& catalog) {
  if (!read.first) return {};
  const std::string begin = catalog.moment(*read.first);
  if (range.to && *read.last >= *range.to) return fmt::format("from {} and later", begin);
  return fmt::format("from {} to {}", begin, catalog.moment(*read.last));
}

TicksRead read_ticks(Source& source, const TickTaker& taker, const TimeRange& range) {
  TicksRead read;
  TickReader reader(source);
  Tick* tick = nullptr;
  while ((tick = reader.next()) != nullptr) {
    if (!read.first) read.first = tick->time;
    read.last = tick->time;
    if (range.from && tick->time < *range.from) continue;
    if (range.to && tick->time >= *range.to) break;
    if (taker.wait && !taker.wait(*tick)) break;
    if (tick->starts_anew) taker.begin_anew(*tick);
    if (!taker.take(*tick)) break;
  }
  read.at_end = tick == nullptr;
  read.broken = reader.broken();
  return read;
}

std::vector<std::string> warnings_of(const SourceNotes& notes) {
  std::vector<std::string> out = notes.warnings;
  for (const std::string& skipped : notes.first_skipped) out.push_back("skipped " + skipped);
  return out;
}

}  // namespace vramtrack

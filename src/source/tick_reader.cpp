#include "source/tick_reader.hpp"

#include <utility>

namespace vramtrack {
namespace {

bool starts_anew(const Event& event) {
  return event.kind == Event::Kind::watch_started && !event.went_on;
}

}  // namespace

Tick* TickReader::next() {
  const auto take = [this](Batch& tick, Timestamp time) {
    keep(tick, time);
    return true;
  };
  while (waiting_.empty() && !at_end_) {
    stretch_.clear();
    const Result<Progress> polled = source_.poll({}, stretch_);
    if (!polled) broken_ = polled.error();
    ticks_.add(stretch_, take);
    at_end_ = !polled || *polled == Progress::end;
    if (at_end_) ticks_.finish(take);
  }
  if (waiting_.empty()) return nullptr;
  now_ = std::move(waiting_.front());
  waiting_.pop_front();
  return &*now_;
}

/// What happened before the instant at which another watch begins belongs to the previous watch.
void TickReader::keep(Batch& tick, Timestamp time) {
  const std::vector<Event> events = std::exchange(tick.events, {});
  auto from = events.begin();
  for (auto at = events.begin(); at != events.end(); ++at) {
    if (at == from || !starts_anew(*at)) continue;
    Tick part;
    part.time = from->time;
    part.batch.events.assign(from, at);
    push(std::move(part));
    from = at;
  }
  tick.events.assign(from, events.end());
  push({time, std::exchange(tick, {}), false});
}

void TickReader::push(Tick tick) {
  tick.starts_anew = any_ && !tick.batch.events.empty() && starts_anew(tick.batch.events.front());
  any_ = true;
  waiting_.push_back(std::move(tick));
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

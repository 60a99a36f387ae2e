#include "live/loop.hpp"

#include <algorithm>
#include <utility>

namespace vramtrack {
namespace {

/// A tick that begins after this share of the interval is late.
constexpr double kLateShare = 0.5;

SteadyTime::duration steps(double seconds) {
  return std::chrono::duration_cast<SteadyTime::duration>(from_seconds(seconds));
}

/// What a tick costs is real time, however fast the loop's clock goes.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

Loop::Loop(const Config& config, LoopInput input, Clock clock)
    : config_(config),
      input_(std::move(input)),
      clock_(std::move(clock)),
      pipeline_(config_, *input_.catalog, kMaxEndedSeries),
      interval_s_(config_.watch.interval_seconds),
      next_(clock_.steady()),
      started_(stamps_.next(clock_.read())),
      now_(started_) {
  for (const LiveSource& live : input_.sources) cost_.sources.push_back({.name = std::string(live.name)});
}

std::vector<std::string> Loop::source_names() const {
  std::vector<std::string> names;
  for (const LiveSource& live : input_.sources) names.emplace_back(live.name);
  return names;
}

void Loop::tick() {
  ++cost_.polls;
  if (clock_.steady() > next_ + steps(interval_s_ * kLateShare)) ++cost_.late_polls;
  batch_.clear();
  const bool ended = poll_sources();
  const Stopwatch observing;
  pipeline_.take(batch_);
  cost_.samples += batch_.samples.size();
  cost_.observe_s += observing.seconds();
  if (ended && input_.again) start_again();
  next_ = next_deadline(next_, steps(interval_s_), clock_.steady());
}

/// True when one of them has come to its end.
bool Loop::poll_sources() {
  now_ = stamps_.next(clock_.read());
  if (std::string news = stamps_.take_news(); !news.empty())
    batch_.events.push_back(Event{.time = now_, .kind = Event::Kind::note, .text = std::move(news)});
  bool ended = false;
  for (std::size_t i = 0; i < input_.sources.size(); ++i) {
    LiveSource& live = input_.sources[i];
    SourceCost& cost = cost_.sources[i];
    const Stopwatch polling;
    ended |= poll_live(live, now_, batch_, [this](const std::string& text) { pipeline_.warn(text); }) == Progress::end;
    cost.poll_s += polling.seconds();
    ++cost.polls;
    if (!live.error.empty()) ++cost.failed_polls;
  }
  // A simulation has times of its own.
  for (const Sample& sample : batch_.samples) now_ = std::max(now_, sample.time);
  return ended;
}

/// The next run follows the last, and knows nothing of it.
void Loop::start_again() {
  now_ += from_seconds(interval_s_);
  pipeline_.begin_anew(now_);
  for (LiveSource& live : input_.sources) live.source = input_.again(now_, *input_.catalog);
}

}  // namespace vramtrack

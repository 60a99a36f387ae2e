#include "live/loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/option.hpp"
#include "live/program_store.hpp"
#include "live/resume.hpp"

namespace vramtrack {
namespace {

/// A tick that begins after this share of the interval is late.
constexpr double kLateShare = 0.5;

SteadyTime::duration steps(double seconds) {
  return std::chrono::duration_cast<SteadyTime::duration>(from_seconds(seconds));
}

/// The cost of a tick is real time, however fast the loop's clock runs.
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
      now_(started_),
      progress_(config_.stall, config_.sources),
      walls_(config_.sources),
      host_(config_.stall, config_.sources) {
  make_sources();
  for (const LiveSource& live : input_.sources) cost_.sources.push_back({.name = std::string(live.name)});
}

/// Not before the beginning of the watch, as its recording states it.
void Loop::make_sources() {
  for (LiveSource& live : input_.sources)
    if (!live.source) live.source = input_.again(started_, *input_.catalog);
}

bool Loop::record_into(const StoreConfig& store) {
  auto opened = Store::open(store, *input_.catalog, started_);
  if (!opened) {
    pipeline_.warn(fmt::format("not recording: {}; watching continues without it (pass {} to silence this)",
                               opened.error().message, name_of(Option::no_record)));
    return false;
  }
  if (config_.watch.experience) pipeline_.remember(memory_in(**opened));
  if (const auto last = (*opened)->clock_mark()) {
    const Timestamp resumed = stamps_.resume(*last, clock_.read(), clock_.boot_id);
    const bool same_boot = !clock_.boot_id.empty() && last->boot_id == clock_.boot_id && resumed > last->stamp;
    // A simulation starts over each time.
    if (config_.watch.experience && same_boot && !input_.again && pipeline_.resume((*opened)->path(), resumed))
      ended_ = ended_meanwhile(*pipeline_.view(), config_.sources.proc_root, resumed);
    if (input_.again)
      for (LiveSource& live : input_.sources) live.source.reset();
    started_ = now_ = resumed;
    make_sources();
  }
  if (config_.watch.experience && !input_.again) pipeline_.read_days_of((*opened)->path(), started_);
  pipeline_.record_into(std::move(*opened), started_);
  return true;
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
  pipeline_.keep_time(stamps_.mark(clock_.boot_id));
  pipeline_.take(batch_);
  cost_.samples += batch_.samples.size();
  cost_.observe_s += observing.seconds();
  if (ended && input_.again) start_again();
  next_ = next_deadline(next_, steps(interval_s_), clock_.steady());
}

/// True if one of them has ended.
bool Loop::poll_sources() {
  now_ = stamps_.next(clock_.read());
  batch_.events.insert(batch_.events.end(), ended_.begin(), ended_.end());
  ended_.clear();
  if (outside_)
    for (Event& event : outside_()) {
      event.time = now_;
      batch_.events.push_back(std::move(event));
    }
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
  pipeline_.set_source_warnings(standing_warnings(input_.sources));
  health_.add(*input_.catalog, batch_);
  // The processes of a simulation do not exist on this machine.
  if (!input_.again) {
    walls_.add(*input_.catalog, now_, batch_);
    host_.add(*input_.catalog, now_, batch_);
    cost_.host_kills = host_.kills();
    const Stopwatch looking;
    if (progress_.add(*input_.catalog, now_, batch_)) {
      ++cost_.looks;
      cost_.look_s += looking.seconds();
    }
  }
  // A simulation has its own times.
  for (const Sample& sample : batch_.samples) now_ = std::max(now_, sample.time);
  return ended;
}

/// The next run follows the last one, and has only what the store remembers about programs.
void Loop::start_again() {
  now_ += from_seconds(interval_s_);
  pipeline_.begin_anew(now_);
  for (LiveSource& live : input_.sources) live.source = input_.again(now_, *input_.catalog);
}

}  // namespace vramtrack

// Loop: the one live loop. At each deadline of its clock it polls the sources and hands the batch to a Pipeline.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/config.hpp"
#include "live/clock.hpp"
#include "live/health_history.hpp"
#include "live/host_rounds.hpp"
#include "live/pipeline.hpp"
#include "live/progress_rounds.hpp"
#include "live/sources.hpp"
#include "live/stamps.hpp"
#include "live/wall_rounds.hpp"
#include "report/metrics.hpp"

namespace vramtrack {

/// The sources that a loop polls. The series of `sources` are in `catalog`.
struct LoopInput {
  std::unique_ptr<Catalog> catalog;
  std::vector<LiveSource> sources;
  /// For a simulation: makes its source, beginning at that time; called when the loop begins if there is none yet, and
  /// again when it has ended. Empty: the sources exist and do not end.
  std::function<std::unique_ptr<Source>(Timestamp start, Catalog& catalog)> again;
};

/// `watch`, `top` and the agent differ in which listeners pipeline() has and in how they wait for next():
///
///     Loop loop(config, std::move(input), machine_clock());
///     loop.pipeline().listen(...);
///     while (loop.clock().sleep_until(loop.next())) loop.tick();
///     loop.finish();
///
/// Used from one thread; the Views may be shared freely.
class Loop {
 public:
  /// `config` is copied; the interval is config.watch.interval_seconds.
  Loop(const Config& config, LoopInput input, Clock clock);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] Pipeline& pipeline() { return pipeline_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// Records everything from now on into the store at `store.path`; the stamps continue from those of the last run that
  /// recorded there. False if it cannot be opened: listeners have been notified why, and the loop continues without it.
  /// REQUIRES: no tick() yet.
  bool record_into(const StoreConfig& store);

  /// When tick() is due. The first one is due at once.
  [[nodiscard]] SteadyTime next() const { return next_; }
  /// Polls every source once, passes on the results, and sets next().
  void tick();
  /// `held`: the processes that a policy keeps from running or growing. Their rest is neither a sign of a stall nor the
  /// end of a leak. Called in tick().
  void mark_held(std::function<HeldProcesses()> held) { progress_.mark_held(std::move(held)); }
  /// From now on, `outside` returns events from outside, as marks of processes, at each tick, whose time they get. Runs
  /// on the loop's thread.
  void add_events_of(std::function<std::vector<Event>()> outside) { outside_ = std::move(outside); }
  /// Writes what has not been written yet.
  void finish() { pipeline_.flush(); }

  /// Applies from the next tick on. REQUIRES: > 0.
  void set_interval(double interval_s) { interval_s_ = interval_s; }
  [[nodiscard]] double interval_s() const { return interval_s_; }
  /// When this loop was created, in the time of its sample stamps.
  [[nodiscard]] Timestamp started() const { return started_; }
  /// The stamp of the last tick.
  [[nodiscard]] Timestamp now() const { return now_; }
  [[nodiscard]] const Catalog& catalog() const { return *input_.catalog; }
  [[nodiscard]] std::vector<std::string> source_names() const;
  /// Polls, samples and the time they took, since the start; the rest of OwnCost comes from the agent.
  [[nodiscard]] const OwnCost& cost() const { return cost_; }

 private:
  void make_sources();
  bool poll_sources();
  void start_again();

  const Config config_;
  LoopInput input_;
  Clock clock_;
  Pipeline pipeline_;
  Stamps stamps_;
  double interval_s_;
  SteadyTime next_;
  Timestamp started_;
  Timestamp now_;
  ProgressRounds progress_;
  WallRounds walls_;
  HostRounds host_;
  HealthHistory health_;
  Batch batch_;
  std::function<std::vector<Event>()> outside_;
  std::vector<Event> ended_;  ///< processes that ended after the last watch and before the first tick
  OwnCost cost_;
};

}  // namespace vramtrack

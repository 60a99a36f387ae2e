// Plays one trace through vramtrack's engine and records what it reports.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "engine/engine.hpp"
#include "listing.hpp"
#include "play.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack::accuracy {

inline double seconds_of(Timestamp time) {
  return seconds_between(Timestamp{}, time);
}

/// Feeds the engine and keeps the notes. All references must outlive it.
class Session {
 public:
  Session(const Trace& trace, const Config& config, Catalog& catalog, Past& past);

  /// Verdicts are sampled at fractions of this.
  void expect_duration(double duration_s);
  /// The device that the trace is about.
  void device(std::string id) { device_ = std::move(id); }
  void ingest(const Batch& batch);
  Played finish();

  /// The leaking program has died, and nothing follows that matters.
  [[nodiscard]] bool over() const { return played_.oom_s.has_value() && !trace_.restart_after_s; }
  [[nodiscard]] double now_s() const { return now_s_; }

  /// Notes what the verdict says of the end, `true_in_s` before it.
  void foretell(std::size_t share, double true_in_s);

 private:
  void note(const AlertChange& change);
  void note_end(double at_s);
  void note_told(const Batch& batch);
  void note_suspicions();
  void note_suspect();
  const SeriesView* ours(std::shared_ptr<const View> view);
  void look();

  const Trace& trace_;
  Catalog& catalog_;
  Listing listing_;
  Engine engine_;
  Played played_;
  std::shared_ptr<const View> view_;
  std::string device_;
  double now_s_ = 0;
  double look_every_s_ = 0;
  double next_look_s_ = 0;
  int looks_ = 0;
  int standing_ = 0;
  double raised_s_ = 0;
  bool raised_now_ = false;
  std::set<SeriesId> telling_;  ///< told as leaks now
  std::optional<double> told_since_s_;
  bool told_elsewhere_ = false;
};

}  // namespace vramtrack::accuracy

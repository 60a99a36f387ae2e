// Session: an Engine whose alerts and events are printed as they happen. Shared by watch, replay and simulate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "core/config.hpp"
#include "engine/engine.hpp"
#include "source/source.hpp"

namespace vramtrack::cli {

/// Not thread-safe. Builds no View and no text in ticks in which nothing is to be printed.
class Session {
 public:
  /// Texts told: sources rebuild their warnings at will.
  using Told = std::set<std::string>;
  struct Counts {
    std::uint64_t ticks = 0;
    std::uint64_t samples = 0;
    std::uint64_t raised = 0;
    std::uint64_t cleared = 0;
  };

  /// `in_place`: on a terminal, the status table is drawn over the one before. `config`, `catalog`
  /// and `console` must outlive the session. `max_ended_series`: as Engine's.
  Session(const Config& config, Catalog& catalog, Console& console, bool json, bool in_place,
          std::size_t max_ended_series = Engine::kKeepAll);

  /// Called at every raise, escalation and clear, before it is printed.
  void on_alert(std::function<void(const AlertChange&)> callback) { on_alert_ = std::move(callback); }

  /// Called after on_alert, when the View of the tick is there.
  void on_news(std::function<void(const View&, const SeriesView&, const Alert&, AlertNews)> callback) {
    on_news_ = std::move(callback);
  }

  /// Takes in one tick, whole, and prints what it brought about.
  void take(const Batch& tick);
  /// Prints the status: a table, or with json one analysis line per series.
  void status();
  /// The same as it stands at the end, unless it has just been shown; with `explain` in full.
  void last_status(bool explain);
  /// Warnings of a source that are not in `told`, on standard error; `told` is one source's, and kept small.
  void tell_notes(const SourceNotes& notes, Told& told);
  /// From here on nothing is known of what came before; the counts go on.
  void begin_anew();

  [[nodiscard]] std::shared_ptr<const View> view(bool explain = false) const { return engine_->view(explain); }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// Writes `text` above a table that is drawn in place.
  void print(const std::string& text);

 private:
  void print_event(const Event& event);

  Catalog& catalog_;
  Console& console_;
  const Config& config_;
  std::size_t max_ended_series_;
  std::unique_ptr<Engine> engine_;
  Block block_;
  bool json_;
  bool in_place_;
  std::vector<AlertChange> changes_;
  std::function<void(const AlertChange&)> on_alert_;
  std::function<void(const View&, const SeriesView&, const Alert&, AlertNews)> on_news_;
  std::optional<Timestamp> shown_;  ///< time of the last status
  Counts counts_;
};

/// "3 alerts raised, 1 cleared".
std::string alert_counts(const Session::Counts& counts);

}  // namespace vramtrack::cli

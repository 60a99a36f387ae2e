// What the engine is made of: shared by engine.cpp (the loop), endings.cpp (how runs end) and conclude.cpp (verdicts
// and the View).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/endings.hpp"
#include "engine/engine.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {

/// One tick, the samples of one instant, is taken in whole before any alert is decided, so that the order
/// of devices and processes within it does not matter.
struct Engine::Core {
  Core(const Config& c, Catalog& cat, std::size_t max_ended)
      : config(c), catalog(cat), max_ended_series(max_ended), ignore(c.detection.ignore_patterns) {}

  SeriesState& state(SeriesId id) { return series.get(id, catalog, config, ignore); }
  void take(const Sample& sample);
  void apply(const Event& event);
  void complete_tick();
  void decide(SeriesState& series);
  void clear(SeriesState& series, AlertEnd end, std::string reason);
  void refresh_limits();
  void refresh_catalog();
  void end(SeriesState& series, const std::string& said);
  void forget_oldest_ended();
  // endings.cpp
  void notice_fall(const SeriesState& device, const Sample& sample);
  void conclude_falls();
  [[nodiscard]] std::optional<End> end_by_fall(const SeriesState& device, const Fall& fall) const;
  [[nodiscard]] End end_of_process(const SeriesState& process, const std::string& said) const;
  void process_ends(SeriesState& process, const std::string& said);
  void end_device_with(SeriesState& device, const SeriesState& process, const End& its);
  [[nodiscard]] LastFigures last_figures(const SeriesState& series, const End& end) const;
  void device_ends(SeriesState& device, End end);
  void name(End& end, const SeriesState& process) const;
  void leave_the_past(const SeriesState& device, Verdict& verdict) const;
  // conclude.cpp
  [[nodiscard]] Attribution attribution(const SeriesState& device, const Finding& finding) const;
  [[nodiscard]] Verdict verdict(const SeriesState& series) const;

  Config config;
  Catalog& catalog;
  std::size_t max_ended_series;
  IgnorePatterns ignore;
  SeriesTable series;
  // Ids, not pointers: a series that is forgotten meanwhile is passed over.
  std::vector<SeriesId> undecided;  ///< whose detector's opinion changed, or that are held or alerting
  std::vector<SeriesId> deciding;   ///< scratch of complete_tick
  std::vector<SeriesId> touched;    ///< in this tick
  std::vector<Fall> falls;          ///< likewise
  std::deque<SeriesId> ended;
  std::uint64_t catalog_revision = 0;  ///< up to which `series` knows the catalog
  std::deque<Notice> notices;
  std::function<void(const AlertChange&)> callback;
  Timestamp tick{};
  bool tick_open = false;
};

}  // namespace vramtrack

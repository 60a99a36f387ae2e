// The parts of the engine, shared by engine.cpp (the loop), parts.cpp and allocator.cpp (the parts of a device) and
// conclude.cpp (verdicts and the View).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/band.hpp"
#include "engine/endings.hpp"
#include "engine/engine.hpp"
#include "engine/headroom.hpp"
#include "engine/host_memory.hpp"
#include "engine/marks.hpp"
#include "engine/programs.hpp"
#include "engine/run_memory.hpp"
#include "engine/series_table.hpp"
#include "engine/sibling_groups.hpp"
#include "engine/stalls.hpp"
#include "engine/still_holding.hpp"
#include "engine/unreleased.hpp"
#include "engine/walls.hpp"

namespace vramtrack {

/// One growth that shows in the device's total and in its part: what either of them shows is known. A beginning tends
/// to be seen late rather than early.
void take_what_the_total_shows(const Finding& total, Timestamp now, Finding& part);

/// One tick, the samples of one instant, is taken in completely before any alert is decided, so that the order of
/// devices and processes within it does not matter.
struct Engine::Core final : EndingsEngine {
  /// A process that a policy has frozen, throttled or limited. That it does not grow is no evidence about its leak.
  struct Hold {
    Timestamp since;
    std::string words;  ///< "pid 42 is frozen by policy P"
  };

  Core(const Config& c, Catalog& cat, std::size_t max_ended)
      : config(c), catalog(cat), max_ended_series(max_ended), ignore(c.detection.ignore_patterns) {}

  SeriesState& state(SeriesId id) { return series.get(id, catalog, config, ignore); }
  void take(const Sample& sample);
  void apply(const Event& event);
  void complete_tick();
  void decide_all();
  bool adopt(const Alert& alert);
  [[nodiscard]] Alert named(Alert alert) const;
  void go_on(Alert alert, bool stands, Timestamp until);
  void queue(SeriesState& series) override;
  SeriesState& revive(SeriesId id);
  [[nodiscard]] Announce announcer();
  void announce(Alert& alert, AlertNews news);
  [[nodiscard]] std::string work_of(const SeriesKey& key, const Alert& alert) const;
  void report_changes();
  std::vector<Alert> rename(const std::vector<SeriesKey>& leaking, const std::string& incident);
  void refresh_limits();
  void refresh_limit(SeriesState& series) const;
  void take_limit(const Event& event);
  void apply_limits();
  void forget_limits();
  void refresh_catalog();
  void end(SeriesState& series, std::optional<EndKind> reported) override;
  void end_process(const Event& event);
  void add_notice(Notice notice) override;
  void forget_oldest_ended();
  // alerts.cpp
  void decide(SeriesState& series);
  void suspect(SeriesState& series, const Verdict& verdict);
  void drop_suspicion(SeriesState& series, std::string reason);
  void leak_is_found(SeriesState& series, const Verdict& verdict);
  void record_leak(SeriesState& series, const Verdict& verdict);
  void no_leak_any_more(SeriesState& series);
  void page(SeriesState& series, const Verdict& verdict);
  void take_back(SeriesState& series, WhyOver why);
  void clear(SeriesState& series, WhyOver why) override;
  [[nodiscard]] const SeriesState& what_ends(const SeriesState& series) const;
  [[nodiscard]] PageFacts standstill_facts(const SeriesState& series, const Finding& finding) const;
  [[nodiscard]] PageFacts page_facts(const SeriesState& series, const Finding& finding, bool leak) const;
  void leave_to_standstill(const SeriesState& series, Explained& its) const;
  [[nodiscard]] Basis basis_of(const SeriesState& series) const;
  [[nodiscard]] std::optional<Band> band(const SeriesState& total, Timestamp onset) const;
  void follow_standstill(SeriesState& s);
  [[nodiscard]] Move move_of(const SeriesState& series, const Finding& finding) const;
  [[nodiscard]] double cycle_of(const SeriesState& series) const;
  // facts.cpp
  void take_fact(const Sample& sample, const SeriesKey& key);
  void take_busy(DeviceState& device, Timestamp time, double ratio) const;
  void take_age(DeviceState& device) const;
  void take_received(DeviceState& device, Timestamp time, double bytes_per_s) const;
  void describe_kind(SeriesState& series) const;
  void retire_facts(const SeriesKey& memory);
  // parts.cpp
  void derive_remainders();
  void part_changes(SeriesState& part);
  [[nodiscard]] bool is_part(const SeriesState& series) const;
  [[nodiscard]] bool others_give_back(const SeriesState& part) const;
  [[nodiscard]] bool is_part_of(const SeriesState& series, const std::optional<Suspect>& suspect) const;
  void review_total(const SeriesState& device);
  [[nodiscard]] std::optional<double> share_of_growth(const SeriesState& part, const Finding& of_total) const;
  [[nodiscard]] bool knows_parts(const SeriesState& device) const;
  [[nodiscard]] bool wants_leak(const SeriesState& series) const override;
  [[nodiscard]] bool wants_suspicion(const SeriesState& series) const;
  [[nodiscard]] const Hold* hold_of(const SeriesState& series) const;
  [[nodiscard]] const SeriesState* suspected_part(const SeriesState& device) const;
  [[nodiscard]] WhyOver why_over(const SeriesState& series) const;
  [[nodiscard]] std::vector<const SeriesState*> leaking_parts(const SeriesState& device) const;
  void judge_by_parts(const SeriesState& device, Attributed& its) const;
  void take_figures_of_parts(const std::vector<const SeriesState*>& parts, const SeriesState& device,
                             Attributed& its) const;
  [[nodiscard]] bool is_past(const SeriesState& device, const SeriesState& process, const Finding& finding) const;
  [[nodiscard]] const SeriesState* loader(const SeriesState& device) const;
  [[nodiscard]] const SeriesState* fastest_grower(const SeriesState& device) const;
  void leave_to_jobs(const SeriesState& process, Explained& its) const;
  void remember_run(const SeriesState& process);
  void follow_runs(SeriesState& process);
  void suspect_by_runs(const SeriesState& process, Explained& its) const;
  // allocator.cpp
  struct Allocator {
    const SeriesState* allocated = nullptr;
    const SeriesState* reserved = nullptr;
    [[nodiscard]] bool known() const { return allocated != nullptr && reserved != nullptr; }
  };
  [[nodiscard]] Allocator allocator_of(const SeriesState& series) const;
  [[nodiscard]] bool live_memory_leaks(const SeriesState& series) const;
  void allocator_changes(const SeriesState& allocated);
  void leave_to_allocator(const SeriesState& series, Explained& its) const;
  void watch_headroom();
  [[nodiscard]] std::optional<Headroom> headroom(const SeriesState& series) const;
  // conclude.cpp
  void leave_to_band(const SeriesState& series, Finding& its) const;
  [[nodiscard]] std::optional<MemoryWall> wall(const SeriesState& process) const;
  [[nodiscard]] std::optional<MemoryWall> wall_of_host(const SeriesState& process) const;
  [[nodiscard]] std::optional<Walls::Nearest> wall_in_force(const SeriesState& series) const;
  [[nodiscard]] bool ends_with_device(const SeriesState& part) const;
  [[nodiscard]] std::vector<const SeriesState*> sharing(const SeriesState& series) const;
  [[nodiscard]] double growth_together(const SeriesState& series, const Finding& its) const;
  std::string fill_together(const SeriesState& series, Finding& its) const;
  [[nodiscard]] std::string ends_by(const SeriesState& process) const;
  void end_at_wall(const SeriesState& process, Limited& its) const;
  void end_with_host(const SeriesState& process, Limited& its) const;
  void end_with_shared_memory(const SeriesState& series, Finding& its) const;
  void end_with_suspect(const SeriesState& device, Attributed& its) const;
  void hold_near_full(const SeriesState& series, Decided& its) const;
  void hold_by_policy(const SeriesState& series, Decided& its) const;
  void leave_the_past(const SeriesState& device, Found& its) const;
  [[nodiscard]] Attribution attribution(const SeriesState& device, const Finding& finding) const;
  void judge_by_total(const SeriesState& device, Attributed& its) const;
  void take_figures_of_suspect(const SeriesState& device, Attributed& its) const;
  // The stages of a verdict, in order.
  [[nodiscard]] Found found(const SeriesState& series) const;
  [[nodiscard]] Explained explained(const SeriesState& series, Found found) const;
  [[nodiscard]] Limited limited(const SeriesState& series, Explained explained) const;
  [[nodiscard]] Attributed attributed(const SeriesState& series, Limited limited) const;
  [[nodiscard]] Decided decided(const SeriesState& series, Attributed attributed) const;
  [[nodiscard]] Verdict shown(const SeriesState& series, Decided decided) const;
  [[nodiscard]] Verdict verdict(const SeriesState& series) const override;

  Config config;
  Catalog& catalog;
  const Scale& scale = catalog.scale;  ///< formats the figures of sentences
  std::size_t max_ended_series;
  IgnorePatterns ignore;
  SeriesTable series;
  // Ids, not pointers: a series that has since been forgotten is skipped.
  Timestamp tick{};
  Endings endings{*this, config, catalog, series, tick};
  Walls walls;
  HostMemoryOfProcesses hosts;
  Marks marks;
  StillHolding still_holding;
  Programs programs;
  SiblingGroups siblings{catalog, series};
  Stalls stalls{config, catalog, series};
  UnreleasedMemory unreleased{config, catalog};
  HeadroomAlerts headrooms;
  std::vector<SeriesId>
      undecided;  ///< those whose detector changed its opinion, and those that leak, are suspected or paged
  std::vector<SeriesId> deciding;                             ///< scratch of complete_tick
  std::vector<SeriesId> touched;                              ///< in this tick
  std::unordered_set<DeviceKey, KeyHash> limits_moved;        ///< a limit of theirs has moved; their series do not know
  std::unordered_set<ProcessKey, KeyHash> host_limits_moved;  ///< likewise
  std::deque<SeriesId> ended;
  std::uint64_t catalog_revision = 0;  ///< revision of the catalog that `series` reflects
  std::deque<Notice> notices;
  std::unordered_map<ProcessKey, Hold, KeyHash> held;  ///< processes
  std::optional<RunMemory> runs;                       ///< nullopt: no program is compared with its earlier runs
  Incidents incidents;
  std::vector<AlertChange> changes;  ///< not yet reported
  std::function<void(const AlertChange&)> callback;
  bool tick_open = false;
  bool knows_allocators = false;  ///< whether some series belongs to an allocator
};

}  // namespace vramtrack

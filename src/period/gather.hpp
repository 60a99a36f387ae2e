// ReportGatherer: reads a store or recordings into a PeriodReport, through the same engine as a live watch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "engine/engine.hpp"
#include "period/period.hpp"
#include "recorded/recorded.hpp"
#include "source/tick_reader.hpp"
#include "store/store.hpp"

namespace vramtrack {

/// Use once. Up to a day before the range is judged, too, so that the verdicts match those of a watch; charts, alerts
/// and figures cover only the range. Data read before a failure is still reported. Cost: that of a replay, plus about
/// 10 ns per sample.
class ReportGatherer {
 public:
  /// `advice`: the remedy to suggest for a period without samples.
  ReportGatherer(const Config& config, TimeRange range, std::string advice = "give another period")
      : config_(config), range_(range), advice_(std::move(advice)) {}

  /// For files that form one recording. For a store, reports the live watch's conclusions, regardless of today's
  /// detector. Errors: those of plan_one_recorded() and of opening, and an empty range (the error states which times
  /// are available).
  Result<PeriodReport> gather(const RecordedInfo& kind, const std::vector<std::string>& files, const LogOptions& logs);

 private:
  /// `is_closed`: see RecordedPart.
  Status play(Source& source, Catalog& catalog, bool is_closed);
  void take(const Tick& read, Catalog& catalog);
  void begin_anew(Catalog& catalog);
  void keep_views();
  void add_summaries(StoreReader& reader, const Catalog& catalog);
  void add_utilisation(StoreReader& reader, const Catalog& catalog);
  void add_recorded_alerts(StoreReader& reader);
  void assemble(const Catalog& catalog);
  [[nodiscard]] Error nothing_of(const RecordedPart& part, const Catalog& catalog) const;
  [[nodiscard]] Error nothing_of_store(StoreReader& reader, const std::string& path) const;
  [[nodiscard]] bool in_range(Timestamp time) const;
  [[nodiscard]] bool stood_in_range(const Alert& alert) const;

  struct Known {
    SeriesView view;
    bool judged = false;
    std::optional<Timestamp> first;
    Timestamp last = Timestamp::min();
  };
  static std::string name(const SeriesKey& key);

  const Config& config_;
  TimeRange range_;
  std::string advice_;
  std::unique_ptr<Engine> engine_;
  Histories histories_;
  std::map<std::string, Known> known_;  ///< by name()
  std::map<std::string, std::vector<PeriodAlert>> recorded_alerts_;
  std::vector<Timestamp> watches_;  ///< when each watch began
  std::optional<Timestamp> recording_begin_;
  TicksRead read_;
  std::vector<Notice> notices_;
  std::vector<std::string> findings_;  ///< those of the last watch, next to its series
  bool alerts_are_recorded_ = false;
  PeriodReport report_;
};

}  // namespace vramtrack

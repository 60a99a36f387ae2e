// Printer: the listener for watch, replay and simulate. It prints alerts and events as they happen, and the status.
#pragma once

#include <set>
#include <string>

#include "cli/console.hpp"
#include "live/pipeline.hpp"

namespace vramtrack::cli {

/// Not thread-safe. Builds no text in ticks with nothing to print.
class Printer {
 public:
  /// `in_place`: on a terminal, the status table is drawn over the previous one. `pipeline` and `console` must outlive
  /// the printer. Call listen() once.
  Printer(Pipeline& pipeline, Console& console, bool json, bool in_place);

  /// Starts printing the pipeline's reports.
  void listen();
  /// Prints the status: a table, or, with json, one analysis line per series.
  void status();
  /// Prints the final status unless it has just been shown; in full with `explain`.
  void last_status(bool explain);
  /// Call this when the pipeline has started again, because none of its status has been shown yet.
  void forget_shown() { shown_.clear(); }
  /// Writes `text` above a table that is drawn in place: as prose, or, with json, as one line.
  void print(const std::string& text);
  /// The same for standard error.
  void warn(const std::string& text);

 private:
  [[nodiscard]] std::string status_text(const View& view) const;
  void print_new_warnings(const View& view);
  void print_event(const Event& event);
  void print_alert(const AlertNotice& notice);

  Pipeline& pipeline_;
  Console& console_;
  Block block_;
  bool json_;
  bool is_local_;  ///< times are local, for people
  bool in_place_;
  std::string shown_;              ///< the last status shown
  std::set<std::string> printed_;  ///< warnings already printed
  Timestamp shown_time_;           ///< the time of its samples; two in the same second read alike
};

}  // namespace vramtrack::cli

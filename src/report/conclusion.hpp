// Conclusion: the conclusion about a series, drawn once for every surface and every command. Text, JSON, reports, top
// and the exit status render it; none of them decides it again.
//
//   SeriesView -> conclude() -> Conclusion -> conclusion_words(), the text's figures, JSON's verdict, the exit status
#pragma once

#include <optional>
#include <vector>

#include "core/view.hpp"

namespace vramtrack {

/// Whether it is the record of a leak, with or without an alert, and was not withdrawn. A recording with such a record
/// has leaked: exit status 1.
bool shows_leak(const Alert& alert);

/// The leak that was active when the run of `series` ended: its alert, else its record among the suspicions; null if
/// there is none, or if the run has not ended.
const Alert* leak_at_end(const SeriesView& series);

/// Refers to its series, which must outlive it.
class Conclusion {
 public:
  /// `series` is part of `view`. O(series of the view) for one that grows or has leaked.
  Conclusion(const View& view, const SeriesView& series);

  /// The verdict to report. After a run that leaked until its end, and until something grows again, it is the verdict
  /// of that run: as in its alert, with the growth at its end, and with the reasons of that time if a wall ended it;
  /// what came after is a separate fact. Otherwise it is the current one. A device and the process that explains its
  /// growth share one onset, the earlier one.
  [[nodiscard]] const Verdict& verdict() const { return own_ ? *own_ : series_.verdict; }
  [[nodiscard]] const Finding& finding() const { return verdict().finding; }
  /// Whether verdict() belongs to a run that has ended.
  [[nodiscard]] bool is_of_ended_run() const { return is_of_ended_run_; }

 private:
  const SeriesView& series_;
  bool is_of_ended_run_ = false;
  std::optional<Verdict> own_;  ///< if it differs from the series' own
};

/// Whether `series` is at rest after a run that leaked until its end, so that the conclusion is about that run.
bool is_of_ended_run(const SeriesView& series);

/// The series of the device and of the process that end together with `series`, which has ended; includes it.
std::vector<const SeriesView*> same_end(const SeriesView& series, const View& view);

/// Whether a leak of the series was reported and not withdrawn, at any time of the recording.
bool has_leaked(const SeriesView& series);
/// Whether any series has leaked: exit status 1.
bool has_leaked(const View& view);

}  // namespace vramtrack

// Conclusion: what is concluded about a series, once for every surface and every command. Text, JSON, reports, top and
// the exit status render it; none of them decides it again.
//
//   SeriesView -> conclude() -> Conclusion -> tell(), the text's figures, the JSON's verdict, the exit status
#pragma once

#include <optional>

#include "core/view.hpp"

namespace vramtrack {

/// Whether it is the record of a leak, with an alert or without, and was not withdrawn. A recording with such a record
/// has leaked: exit status 1.
bool shows_leak(const Alert& alert);

/// The leak that stood when the run of `series` ended: its alert, else its record among the suspicions; null: none
/// stood, or the run has not ended.
const Alert* leak_at_end(const SeriesView& series);

/// Refers to its series, which must outlive it.
class Conclusion {
 public:
  explicit Conclusion(const SeriesView& series);

  /// What is said of the series. While nothing is known of what came after a run that leaked until its end, that is the
  /// verdict of the run: as its alert found it, with the growth at its end. Else that of the present.
  [[nodiscard]] const Verdict& verdict() const { return of_run_ ? *of_run_ : series_.verdict; }
  [[nodiscard]] const Finding& finding() const { return verdict().finding; }
  /// verdict() is that of a run that has ended.
  [[nodiscard]] bool is_of_ended_run() const { return of_run_.has_value(); }
  /// The series was told as a leak, and that was not withdrawn.
  [[nodiscard]] bool leaked() const { return leaked_; }

 private:
  const SeriesView& series_;
  bool leaked_ = false;
  std::optional<Verdict> of_run_;
};

/// Whether any series has leaked: exit status 1.
bool has_leaked(const View& view);

}  // namespace vramtrack

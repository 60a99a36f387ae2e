// Stream: one series through the engine, sample by sample, with what is measured beside it of the same process and
// device: the verdict that a live watch of the same samples gives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"
#include "engine/engine.hpp"

namespace vramtrack::python {

/// What Python gets: the line, the words, and the series as few enough stretches to draw, each with its range.
struct Analysis {
  std::string line;  ///< vramtrack.analysis.v1; empty when there is no sample
  std::string text;
  std::vector<double> times_s;  ///< of the first sample of each stretch
  std::vector<double> low_bytes;
  std::vector<double> mean_bytes;
  std::vector<double> high_bytes;
};

/// The range and the mean of a series in at most kMost stretches of equal width, however long the series is. When they
/// are full, neighbours merge and the width doubles.
class Outline {
 public:
  static constexpr std::size_t kMost = 600;

  /// Times must not decrease. O(1) amortised.
  void observe(double time_s, double bytes);
  void write(Analysis& out) const;

 private:
  struct Stretch {
    std::int64_t slot = 0;  ///< its start in widths since the first sample
    double first_s = 0;
    double low_bytes = 0;
    double high_bytes = 0;
    double sum_bytes = 0;
    double samples = 0;
  };

  void halve();

  double first_s_ = 0;
  double width_s_ = 1e-3;
  std::vector<Stretch> stretches_;
};

/// Series of one process and its device, each of another metric; one is the main one. Memory is bounded whatever their
/// length. Not thread-safe.
class Stream {
 public:
  /// `settings`: assignments such as "detection.leak-prior=0.2". An Error: a metric or setting that does not exist.
  static Result<Stream> open(const std::string& metric, const std::vector<std::string>& settings, unsigned device_id);

  /// Where memory ends from the next sample on. An Error unless it is above 0.
  Status set_capacity(double capacity_bytes);
  /// To what the main metric or another can come at most, if that is less than what is free. An Error unless it is
  /// above 0.
  Status set_ceiling(const std::string& metric, double bytes);
  /// The next samples: seconds since 1970, or since some beginning, that do not decrease; bytes, or NaN where nothing
  /// could be read. An Error names the first value that is neither, and then none of the samples is taken. About 0.2 us
  /// a sample.
  Status observe(const double* times_s, const double* used_bytes, std::size_t n);
  /// The same of one value of another metric, which the verdicts take into account. Its time is not before any other.
  Status observe_beside(const std::string& metric, double time_s, double used_bytes);
  /// The program works at this time, which is not before any other: it has ended a step or answered a request.
  Status works(double time_s);
  /// The verdict so far, as if the series ended here: a later sample of the same instant is one more tick. `explain`
  /// adds every gate and figure. Does not depend on the number of samples: some 0.1 ms.
  [[nodiscard]] Analysis analysis(bool explain) { return analysis_of(*main_, explain); }
  /// Likewise, of another metric: as if there were no sample where none was observed.
  [[nodiscard]] Result<Analysis> analysis_beside(const std::string& metric, bool explain);
  /// The same where nothing more will come: see Engine::end_of_recording.
  [[nodiscard]] Analysis final_analysis(bool explain);

 private:
  struct One {
    SeriesId id{};
    Outline outline;
  };

  Stream() = default;
  Result<One*> find(const std::string& metric);
  [[nodiscard]] Status observe(One& one, const double* times_s, const double* used_bytes, std::size_t n);
  [[nodiscard]] Analysis analysis_of(const One& one, bool explain);
  [[nodiscard]] Status check(const double* times_s, const double* used_bytes, std::size_t n) const;

  std::unique_ptr<Catalog> catalog_;  ///< the engine refers to it
  std::unique_ptr<Engine> engine_;
  std::string device_id_;
  std::map<Metric, One> series_;  ///< nodes: a One never moves
  One* main_ = nullptr;
  Batch batch_;
  std::optional<double> last_s_;
};

}  // namespace vramtrack::python

// LeakGate: repeats a body until it is known whether it leaks. The sequential side of the leak gate; the test itself is
// growth_test.hpp.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "gate/growth_test.hpp"

namespace vramtrack::gate {

/// How often the body is repeated. It is looked at after `first` iterations and each time their number has doubled,
/// `most` included.
struct Iterations {
  std::size_t first = 128;
  std::size_t most = 1024;
};

/// One per gated body. It passes at the first look at which growth above the limit is excluded, and fails at the last
/// one; earlier only when two looks in turn fail it and memory would be full before the next one. Looking several times
/// does not raise the error rate: each look that can fail has its share of it (Bonferroni). Not thread-safe.
class LeakGate {
 public:
  /// REQUIRES: as test_growth. `iterations.most` is raised to least_iterations() where it is less.
  /// `capacity_bytes`: where memory ends; infinity: not known.
  LeakGate(const GrowthLimits& limits, const Iterations& iterations,
           double capacity_bytes = std::numeric_limits<double>::infinity());

  /// Memory in use after one more iteration. Ignored once finished. Amortised microseconds.
  void add(double used_bytes);
  /// No more iterations are needed.
  [[nodiscard]] bool finished() const { return finished_; }
  /// The conclusion so far: at the last look; before the first one, too_short.
  [[nodiscard]] const GrowthResult& result() const { return result_; }
  [[nodiscard]] const std::vector<double>& used_bytes() const { return used_bytes_; }
  /// As they are after raising what was too few.
  [[nodiscard]] const Iterations& iterations() const { return iterations_; }
  /// The error rate of each look that can fail. A result's words name the rate that was asked for, and the looks.
  [[nodiscard]] double error_rate_of_a_look() const { return share_.error_rate; }

 private:
  void look();

  GrowthLimits limits_;
  GrowthLimits share_;  ///< with the error rate of one look
  Iterations iterations_;
  double capacity_bytes_;
  std::size_t next_look_;
  std::vector<double> used_bytes_;
  GrowthResult result_;
  bool failed_before_ = false;
  bool finished_ = false;
};

}  // namespace vramtrack::gate

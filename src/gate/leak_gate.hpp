// LeakGate: repeats a body until it is known whether it leaks. The sequential part of the leak gate; the test itself is
// in growth_test.hpp.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "gate/growth_test.hpp"

namespace vramtrack::gate {

/// How often the body is repeated. The series is tested after `first` iterations, each time their number has doubled,
/// and after `most`.
struct Iterations {
  std::size_t first = 128;
  std::size_t most = 1024;
};

/// One per gated body. It passes at the first look that excludes growth above the limit, and fails only at the last
/// look, or earlier if two consecutive looks fail and memory would be full before the next one. Looking several times
/// does not raise the error rate: each look that can fail gets a share of it (Bonferroni). Not thread-safe.
class LeakGate {
 public:
  /// REQUIRES: as test_growth. `iterations.most` is raised to twice least_iterations() if it is less.
  /// `capacity_bytes`: where memory ends; infinity: not known.
  LeakGate(const GrowthLimits& limits, const Iterations& iterations,
           double capacity_bytes = std::numeric_limits<double>::infinity());

  /// Adds the memory in use after one more iteration. Ignored once finished. Amortised microseconds.
  void add(double used_bytes);
  /// No more iterations are needed.
  [[nodiscard]] bool finished() const { return finished_; }
  /// The conclusion so far, from the last look; before the first look, too_short.
  [[nodiscard]] const GrowthResult& result() const { return result_; }
  [[nodiscard]] const std::vector<double>& used_bytes() const { return used_bytes_; }
  /// As given, after raising numbers that were too low.
  [[nodiscard]] const Iterations& iterations() const { return iterations_; }

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

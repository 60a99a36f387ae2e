// LeakGate: repeats a body until it can decide whether the body leaks. This is the sequential part of the gate; the
// test itself is in growth_test.hpp.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "gate/growth_test.hpp"

namespace vramtrack::gate {

/// How often the body is repeated. The series is tested after `first` iterations, whenever their number has doubled,
/// and after `most`.
struct Iterations {
  std::size_t first = 128;
  std::size_t most = 1024;
};

/// One per gated body. It passes at the first look that rules out growth above the limit. It fails only at the last
/// look, or earlier if two consecutive looks fail and memory would be full before the next one. Several looks do not
/// raise the error rate: each look that can fail gets a share of it (Bonferroni). Not thread-safe.
class LeakGate {
 public:
  /// REQUIRES: as for test_growth(). `iterations.most` is raised to twice least_iterations() if it is less.
  /// `capacity_bytes`: the memory available; infinity if unknown.
  LeakGate(const GrowthLimits& limits, const Iterations& iterations,
           double capacity_bytes = std::numeric_limits<double>::infinity());

  /// Adds the memory in use after one more iteration. Ignored once finished. Amortised microseconds.
  void add(double used_bytes);
  /// Whether no more iterations are needed.
  [[nodiscard]] bool finished() const { return finished_; }
  /// The conclusion of the latest look; too_short before the first look.
  [[nodiscard]] const GrowthResult& result() const { return result_; }
  [[nodiscard]] const std::vector<double>& used_bytes() const { return used_bytes_; }
  /// The given numbers, raised where they were too low.
  [[nodiscard]] const Iterations& iterations() const { return iterations_; }

 private:
  void look();

  GrowthLimits limits_;
  GrowthLimits share_;  ///< the limits, with the error rate of one look
  Iterations iterations_;
  double capacity_bytes_;
  std::size_t next_look_;
  std::vector<double> used_bytes_;
  GrowthResult result_;
  bool failed_before_ = false;
  bool finished_ = false;
};

}  // namespace vramtrack::gate

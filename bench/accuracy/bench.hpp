// All contenders on all traces.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "metrics.hpp"

namespace vramtrack::accuracy {

/// One trace with what every contender made of it. The played points are dropped: only figures stay.
struct Run {
  Trace trace;
  Played played;
  Scored ours;  ///< the alerts
  Scored told;
  Scored suspected;
  std::vector<Scored> rivals;  ///< in the order given
  std::vector<double> rival_seconds;
  std::size_t samples = 0;

  [[nodiscard]] const Scored& at(Mark mark) const {
    return mark == Mark::paged ? ours : mark == Mark::told ? told : suspected;
  }
};

/// `each` of 0 to `count` - 1, on `jobs` threads. Throws what `each` throws.
void in_parallel(std::size_t count, unsigned jobs, const std::function<void(std::size_t)>& each);

/// Runs on `jobs` threads; the result does not depend on their number.
std::vector<Run> run_all(const std::vector<Trace>& traces, const Config& config, std::span<const RivalInfo> rivals,
                         unsigned jobs);

}  // namespace vramtrack::accuracy

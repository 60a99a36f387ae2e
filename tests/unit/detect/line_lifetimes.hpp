// Lifetimes of the memory that one line allocates, from the functions that describe it.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "detect/lifetimes.hpp"

namespace vramtrack {

/// A line that allocates `rate(t)` bytes per second, of which the share `left(age)` is live. Times and ages in seconds.
inline SiteLifetimes line_lifetimes(std::string site, double now_s, const std::function<double(double)>& rate,
                                    const std::function<double(double)>& left) {
  SiteLifetimes out{std::move(site), 0, 0, 0, now_s, {}};
  for (double t = 0; t < now_s; t += 30) {
    const double allocated = 30 * rate(t), age = now_s - t - 15;
    if (allocated <= 0) continue;
    out.ages.push_back({std::max(0.0, age - 15), age + 15, allocated, allocated * left(std::max(0.0, age))});
    out.live_bytes += out.ages.back().live_bytes;
    out.idle_s = out.ages.back().youngest_s;
  }
  return out;
}

}  // namespace vramtrack

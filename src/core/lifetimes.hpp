// SiteLifetimes: what one line of a program has allocated, by age, and how much of it is still live.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace vramtrack {

/// What was allocated in one stretch of time.
struct AgedBytes {
  double youngest_s = 0, oldest_s = 0;  ///< how long ago the stretch ended and began
  double allocated_bytes = 0;
  double live_bytes = 0;  ///< of these
  friend bool operator==(const AgedBytes&, const AgedBytes&) = default;
};

struct SiteLifetimes {
  std::string site;             ///< "train.py:57 train_step"
  double live_bytes = 0;        ///< all that it holds of what was allocated since its process is traced
  double error_bytes = 0;       ///< standard error of that; 0: exact
  double idle_s = 0;            ///< since it allocated last
  std::vector<AgedBytes> ages;  ///< oldest first; they do not overlap
  friend bool operator==(const SiteLifetimes&, const SiteLifetimes&) = default;
};

}  // namespace vramtrack

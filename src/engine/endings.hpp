// How a run ended: from a fall of its device's memory, from the end of its process, or from both.
#pragma once

#include <cstdint>
#include <optional>

#include "core/verdict.hpp"

namespace vramtrack {

/// A run's last figures, for end_kind().
struct LastFigures {
  double used_bytes = 0;
  std::optional<double> limit_bytes;
  std::optional<double> onset_bytes;         ///< where the growth began; nullopt: it did not grow
  std::optional<double> growth_bytes_per_s;  ///< likewise
  double unseen_s = 0;                       ///< time after the last sample for which it continued unseen
};

/// A device's series as it was before a sample that is far lower than the one before. A driver frees the memory of a
/// process in one go or over many readings, so the fall is kept until it is known whether it was an end.
struct Fall {
  SeriesId device{};
  Timestamp seen;  ///< the first lower sample
  Verdict before;
  End end;  ///< how it ended, and whose end it was, are found out later
  LastFigures last;
  std::uint64_t lowest_bytes = 0;  ///< since `seen`
  bool over = false;               ///< its meaning is known
  bool told = false;  ///< it follows a known end: all that is left to find out is which processes ended with it
};

/// What is known about a fall so far.
enum class FallMeans : std::uint8_t { an_end, no_end, not_known_yet };

/// How it ended, judged by the figures alone. Out of memory: what was free when it was last seen, less what it grew
/// unseen at its last rate, is at most a tenth of what was free when the growth began. Near the limit: at most a tenth
/// of the limit was free. Pure.
EndKind end_kind(const LastFigures& last);

}  // namespace vramtrack

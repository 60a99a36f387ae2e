// Marks: points that processes reach, as they or others report: how memory grows from one to the next.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/sample.hpp"
#include "core/wall.hpp"
#include "detect/facts.hpp"
#include "engine/series_state.hpp"

namespace vramtrack {

/// Not thread-safe. Memory: a Track per name, at most kMostNames per process.
class Marks {
 public:
  static constexpr std::size_t kMostNames = 16;

  /// A mark "step=1200", or "step", which is counted here. A number that falls starts over.
  void take(const Event& event);
  /// For the most frequent mark: the growth in `finding`, divided by the number of marks since it began. nullopt if
  /// the process makes none.
  [[nodiscard]] std::optional<MarkGrowth> growth_of(const SeriesState& process, const Finding& finding) const;
  void forget(const ProcessKey& process) { known_.erase(process); }

 private:
  struct Known {
    Track track;  ///< its number, or how many have come
    Timestamp first;
    std::uint64_t last = 0;
    std::uint64_t count = 0;
  };
  std::unordered_map<ProcessKey, std::map<std::string, Known>, KeyHash> known_;
};

}  // namespace vramtrack

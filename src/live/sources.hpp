// Live: what a command that watches this machine is made of: stamps, the live sources and their polls. Shared by watch,
// top and agent.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "source/source.hpp"

namespace vramtrack {

/// Processes that have ended are kept so long by a live engine: a watch may run for months.
inline constexpr std::size_t kMaxEndedSeries = 256;

/// Stamps that never go back: when somebody sets the clock back, the old clock goes on.
class StampClock {
 public:
  Timestamp now();
  /// True once after the clock was set back.
  bool take_set_back() { return std::exchange(set_back_, false); }

 private:
  std::optional<Timestamp> last_;
  std::chrono::steady_clock::time_point last_steady_;
  Duration offset_{0};
  bool set_back_ = false;
};

/// What StampClock::take_set_back is told as.
inline constexpr std::string_view kClockSetBack =
    "the clock was set back: samples go on by the old one; restart vramtrack to follow the new one";

/// The first moment after `deadline` in steps of `interval` that is not past at `now`. Missed ones are not made up
/// for: the deadlines stand still while polls are slow or the machine sleeps.
std::chrono::steady_clock::time_point next_deadline(std::chrono::steady_clock::time_point deadline,
                                                    std::chrono::steady_clock::duration interval,
                                                    std::chrono::steady_clock::time_point now);

struct LiveSource {
  std::string_view name;
  std::unique_ptr<Source> source;
  std::string error;           ///< the last one told; empty while it works
  std::set<std::string> told;  ///< of its warnings
};

/// The sources that have something to read; why the others have not goes to `reasons`, in one line.
std::vector<LiveSource> open_live_sources(const SourcesConfig& config, Catalog& catalog, std::string& reasons);

/// Polls one source into `batch`; `warn` hears when it begins or ceases to fail. Its notes are the caller's to tell.
void poll_live(LiveSource& live, Timestamp now, Batch& batch, const std::function<void(const std::string&)>& warn);

/// Calls `warn` with each warning of `notes` that is not in `told`, and remembers those that still stand.
void tell_new(const SourceNotes& notes, std::set<std::string>& told,
              const std::function<void(const std::string&)>& warn);

}  // namespace vramtrack

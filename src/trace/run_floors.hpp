// RunFloors: the minimum that each call site of a process held in each stretch of the run, and in each epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/call_site.hpp"

namespace vramtrack::trace {

/// A stretch is a number of events, an epoch the time between two marks. If there are many, neighbours are joined. The
/// floors themselves are in the sites: 16 bytes per site and stretch.
class RunFloors {
 public:
  /// A moment of the run, which stays the same when stretches are joined.
  struct Place {
    std::uint64_t time_us = 0;
    std::size_t stretches = 0;
    std::size_t joins = 0;
  };
  [[nodiscard]] Place place(std::uint64_t now_us) const { return {now_us, stretch_ends_us_.size(), joins_}; }

  /// Call after each event.
  void count_event(std::vector<CallSite>& sites, std::uint64_t now_us) {
    if (++open_events_ >= stretch_events_) close_stretch(sites, now_us);
  }
  void mark(std::vector<CallSite>& sites, std::string_view name, std::uint64_t time_us);
  /// Whether a freed block is from an earlier epoch.
  [[nodiscard]] bool is_of_earlier_epoch(std::uint64_t time_us) const {
    return is_in_epoch_ && time_us < epoch_begin_us_;
  }
  /// Call once, at the end. `exit`: where the exit, which is not part of the run, begins.
  void finish(std::vector<CallSite>& sites, const std::optional<Place>& exit);

  // After finish():
  /// The stretches of the whole run, equally many for every site, as few as the judgement of a leak needs.
  [[nodiscard]] std::vector<Floor> stretches(const CallSite& site) const;
  [[nodiscard]] std::size_t stretch_count() const { return fine_stretches_ / fine_in_stretch_; }
  /// The same at the finest known resolution.
  [[nodiscard]] std::vector<Floor> fine_stretches(const CallSite& site) const;
  /// The time from the end of the first judged stretch to the end of the last.
  [[nodiscard]] double judged_s() const;
  /// Floors between the marks with the most frequent name; empty if there are fewer than kLeastEpochs of them.
  [[nodiscard]] std::vector<Floor> epochs(const CallSite& site) const;
  [[nodiscard]] std::size_t epoch_count() const { return epoch_bounds_.size(); }
  [[nodiscard]] const std::string& epoch_name() const { return epoch_name_; }

 private:
  void close_stretch(std::vector<CallSite>& sites, std::uint64_t now_us);
  void close_epoch(std::vector<CallSite>& sites);

  std::uint64_t stretch_events_ = 1, open_events_ = 0;
  std::vector<std::uint64_t> stretch_ends_us_;
  std::size_t joins_ = 0;
  std::size_t fine_stretches_ = 0;  ///< without the stretches of the exit
  std::size_t fine_in_stretch_ = 1;
  std::vector<std::string> epoch_names_;            ///< the name of the mark that begins each kept epoch
  std::uint64_t epoch_marks_ = 1, open_marks_ = 0;  ///< marks in each kept epoch, and in the open one
  std::uint64_t epoch_begin_us_ = 0;
  bool is_in_epoch_ = false;
  std::string epoch_name_;
  std::vector<std::pair<std::size_t, std::size_t>> epoch_bounds_;  ///< of the most frequent name
};

/// Lowers the minima of the open stretch and the open epoch to what the site now holds.
inline void lower_floors(CallSite& site) {
  for (Held* const least : {&site.low, &site.epoch})
    *least = {std::min(least->bytes, site.live.bytes), std::min(least->blocks, site.live.blocks)};
}

}  // namespace vramtrack::trace

// RunFloors: the least that each call site of a process held in each stretch of the run, and in each of its epochs.
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

/// A stretch is a number of events, an epoch what lies between marks. When there are many, neighbours are joined. The
/// floors themselves are in the sites: 16 bytes a site and stretch.
class RunFloors {
 public:
  /// A moment of the run, which stays the same when stretches are joined.
  struct Place {
    std::uint64_t time_us = 0;
    std::size_t stretches = 0;
    std::size_t joins = 0;
  };
  [[nodiscard]] Place place(std::uint64_t now_us) const { return {now_us, stretch_ends_us_.size(), joins_}; }

  /// After each event.
  void count_event(std::vector<CallSite>& sites, std::uint64_t now_us) {
    if (++open_events_ >= stretch_events_) close_stretch(sites, now_us);
  }
  void mark(std::vector<CallSite>& sites, std::string_view name, std::uint64_t time_us);
  /// Whether a block that is given back is of an earlier epoch.
  [[nodiscard]] bool is_of_earlier_epoch(std::uint64_t time_us) const {
    return is_in_epoch_ && time_us < epoch_begin_us_;
  }
  /// Once, at the end. `exit`: where it begins, which is no part of the run.
  void finish(std::vector<CallSite>& sites, const std::optional<Place>& exit);

  // After finish():
  /// Of the whole run, of equal length for every site, as few as a leak is judged by.
  [[nodiscard]] std::vector<Floor> stretches(const CallSite& site) const;
  [[nodiscard]] std::size_t stretch_count() const { return fine_stretches_ / fine_in_stretch_; }
  /// The same, as fine as they are known.
  [[nodiscard]] std::vector<Floor> fine_stretches(const CallSite& site) const;
  /// From the end of the first judged stretch to the end of the last.
  [[nodiscard]] double judged_s() const;
  /// Floors between the marks of the name that comes most often; empty where there are fewer than kLeastEpochs of it.
  [[nodiscard]] std::vector<Floor> epochs(const CallSite& site) const;
  [[nodiscard]] std::size_t epoch_count() const { return epoch_bounds_.size(); }
  [[nodiscard]] const std::string& epoch_name() const { return epoch_name_; }

 private:
  void close_stretch(std::vector<CallSite>& sites, std::uint64_t now_us);
  void close_epoch(std::vector<CallSite>& sites);

  std::uint64_t stretch_events_ = 1, open_events_ = 0;
  std::vector<std::uint64_t> stretch_ends_us_;
  std::size_t joins_ = 0;
  std::size_t fine_stretches_ = 0;  ///< without those of the exit
  std::size_t fine_in_stretch_ = 1;
  std::vector<std::string> epoch_names_;            ///< the name of the mark that begins each epoch that is kept
  std::uint64_t epoch_marks_ = 1, open_marks_ = 0;  ///< marks in each epoch that is kept, and in the one that is open
  std::uint64_t epoch_begin_us_ = 0;
  bool is_in_epoch_ = false;
  std::string epoch_name_;
  std::vector<std::pair<std::size_t, std::size_t>> epoch_bounds_;  ///< of the name that comes most often
};

/// Takes `now` as what the site holds at the least in the stretch and the epoch that are open.
inline void lower_floors(CallSite& site) {
  for (Held* const least : {&site.low, &site.epoch})
    *least = {std::min(least->bytes, site.live.bytes), std::min(least->blocks, site.live.blocks)};
}

}  // namespace vramtrack::trace

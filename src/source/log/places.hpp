// Readings of several GPUs that nothing tells apart: whether their order does, or the log must be refused. Rows of
// tables and lines of text are judged alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

/// The readings of one index, or those that name no GPU, in the order of the log.
class PlaceReadings {
 public:
  /// `line`: where it stands; 0: not known.
  void add(double time_s, double used, std::uint64_t line = 0);
  [[nodiscard]] bool empty() const { return times_s_.empty(); }

 private:
  friend class PlaceJudge;

  std::vector<double> times_s_;
  std::vector<double> used_;
  std::vector<std::uint64_t> lines_;
  std::vector<std::size_t> groups_;  ///< readings of each time
  double shortest_gap_s_ = 1e18;     ///< between two times
  std::size_t shared_ = 0;           ///< readings with the time of the previous one, to its last digit
  std::uint64_t first_shared_ = 0;   ///< the line of the first one
};

/// How to speak of such readings, and what is known of them.
struct PlaceWords {
  std::string_view rows = "rows";  ///< what a reading is
  std::string of;                  ///< "name no GPU", "have the index '0'"
  std::string record;              ///< what to do: "record index or uuid of each GPU"
  /// Readings that lack rows, or were interrupted, are told from the others by the caller: most need to be whole.
  bool may_lack_rows = false;
  double grain_s = 1;  ///< grain_of_stamp() of their times
};

/// What the last whole figure of a time as written stands for, in seconds: 60 for "14:34", 1 for "14:34:05,123" and for
/// other times. Readings may share a time within it.
double grain_of_stamp(std::string_view text);

/// Whether the order of the readings may tell GPUs apart.
enum class PlaceOrder : std::uint8_t {
  may,           ///< the same number of readings at every time is enough
  if_it_must,    ///< only if readings share times in earnest: an index says that they are of one GPU
  says_nothing,  ///< never
  if_in_turn,    ///< times are counts of steps, which may repeat: only if the levels alternate
  if_two,        ///< times are epochs, each with many readings of one GPU: only if two levels alternate
};

/// How many GPUs `readings` are of, in a fixed order; 1 if of one. An Error if they are of several GPUs that cannot be
/// told apart: a single series of them all would hide what each one does. `runs_begin_anew`:
/// times are no dates, and go back where a program is started again.
Result<std::size_t> judge_places(PlaceReadings readings, PlaceOrder order, bool runs_begin_anew,
                                 const PlaceWords& words);

/// How many series alternate in `values`: n if, throughout, the value n rows earlier is many times closer than that of
/// the previous row. 1: a single series, or too few values to say (under 32).
std::size_t count_interleaved(std::span<const double> values);

/// Whether the readings are two series merged by time, each with its own clock: two separate paths through the values
/// are many times shorter than a single one, and the readings of each path are evenly spaced in time, while those of
/// both together are not. `times_s` and `values` are of the same readings, at least 32.
bool are_merged(std::span<const double> times_s, std::span<const double> values);

}  // namespace vramtrack

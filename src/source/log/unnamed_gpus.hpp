// Readings of several GPUs: decides whether a column without a known title or the order of their rows distinguishes
// them, or the log must be refused. Treats rows of tables, JSON objects and lines of text alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

/// Readings closer together than this may come from several GPUs, one after another.
inline constexpr double kTogether_s = 0.1;

/// The readings of one index, or those that name no GPU, in log order.
class UnnamedReadings {
 public:
  /// `line`: its line number; 0: unknown.
  void add(double time_s, double used, std::uint64_t line = 0);
  [[nodiscard]] bool empty() const { return times_s_.empty(); }

 private:
  friend class OrderJudge;

  std::vector<double> times_s_;
  std::vector<double> used_;
  std::vector<std::uint64_t> lines_;
  std::vector<std::size_t> groups_;  ///< number of readings at each time
  double shortest_gap_s_ = 1e18;     ///< shortest time between two readings with different times
  std::size_t shared_ = 0;           ///< readings with exactly the time of the previous one
  std::uint64_t first_shared_ = 0;   ///< the line of the first such reading
};

/// The words for such readings in messages, and the known facts about them.
struct ReadingWords {
  std::string_view rows = "rows";  ///< the word for readings
  std::string of;                  ///< "name no GPU", "have the index '0'"
  std::string record;              ///< the advice: "record index or uuid of each GPU"
  double grain_s = 1;              ///< grain_of_stamp() of the readings' times
};

/// The resolution of a time as written, in seconds: 60 for "14:34", 1 for "14:34:05,123" and for other times. Readings
/// within it may share a time.
double grain_of_stamp(std::string_view text);

/// Whether the order of the readings may distinguish GPUs.
enum class OrderEvidence : std::uint8_t {
  may,         ///< an equal number of readings at every time is enough
  if_it_must,  ///< only if many readings share times, although an index assigns them to one GPU
  never,       ///< never
  if_in_turn,  ///< times are step counts, which may repeat, so only if the levels alternate
  if_two,      ///< times are epochs with many readings of one GPU each, so only if two levels alternate
};

/// The number of GPUs that `readings` come from, in a fixed order. Error: several GPUs cannot be distinguished; merging
/// them into one series would hide the behaviour of each. `runs_begin_anew`: times are not dates, and go back when a
/// program is restarted.
Result<std::size_t> count_gpus_by_order(UnnamedReadings readings, OrderEvidence order, bool runs_begin_anew,
                                        const ReadingWords& words);

/// Returns an Error if rows without a time alternate between GPUs that they do not name.
Status check_alternating(std::span<const double> used);

/// Whether a column or key with this title may hold ids that the title does not mention: no count and no measure.
bool may_be_id(std::string_view title);

/// Whether the values of a column distinguish the GPUs in a reading: each occurs once in most readings. Each must have
/// a digit ("B7", "3"), because words are as often the phases of a program. `times` are those of the same rows, as
/// written. `used` is their used memory if times are steps, because the rows may then be parts of a step: each value
/// must keep to a level of its own; otherwise `used` is empty.
bool goes_round(std::span<const std::string_view> values, std::span<const std::string_view> times,
                std::span<const double> used = {});

/// The owners of records: the machine or job of each, and also its process; both empty if no record has one.
struct RecordOwners {
  std::vector<std::string> origins, processes;
};

/// Whether the values of a column number GPUs: they count through them (behaves_like_index()) or go round, among all
/// records or among those of each machine and job, which numbers its GPUs from 0; or each process stays on its own.
/// `times` as above; `has_time`: they are not empty.
bool numbers_gpus(std::span<const std::string_view> values, std::span<const std::string_view> times,
                  const RecordOwners& owners, bool has_time);

/// Whether numbers under a title that names machines only repeat the GPUs' ids: each of several goes with an id of its
/// own, like rocm-smi's "Node ID" per device. `ids` are those of the same rows. Other texts are names. O(rows).
bool repeat_ids(std::span<const std::string_view> numbers, std::span<const std::string_view> ids);

/// The warnings about readings with GPUs that such a column or their order identifies, and why a row is omitted.
std::string distinguished_by(std::string_view title);
std::string distinguished_by_order(std::size_t gpus);
std::string reading_of_another_size(std::size_t rows, std::size_t gpus);

/// How many series alternate in `values`: n if, throughout, the value n rows earlier is many times closer than that of
/// the previous row. 1: a single series, or too few values (under 32).
std::size_t count_interleaved(std::span<const double> values);

/// Whether `values` go through `n` levels in turn, by the rule of count_interleaved(). For readings that are known to
/// have `n` values each, a dozen values suffice.
bool alternate(std::span<const double> values, std::size_t n);

/// Whether the readings are two series merged by time, each with its own clock: two separate paths through the values
/// are many times shorter than a single one, and the readings of each path are evenly spaced in time, while the
/// combined ones are not. `times_s` and `values` belong to the same readings, at least 32.
bool are_merged(std::span<const double> times_s, std::span<const double> values);

}  // namespace vramtrack

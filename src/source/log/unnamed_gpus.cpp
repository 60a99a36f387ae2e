#include "source/log/unnamed_gpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "source/log/columns.hpp"
#include "source/log/labels.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// Several readings may share a time as written; beyond this many units of its resolution, times always differ.
constexpr double kGrainsApart = 1.9;
/// With n alternating series, the path over every n-th row is at least this many times shorter than over all rows. With
/// one series it is not: a trend makes it longer, and noise leaves it unchanged. If one series oscillates with a period
/// of n rows, it may be shorter, but by this much only if it jumps between as many levels as the period has rows.
constexpr double kShorter = 8;

/// Whether the path from row to row is many times longer than the paths over the rows with equal values, all together.
bool keep_to_levels(std::span<const std::string_view> values, std::span<const double> used) {
  std::map<std::string_view, double> last;
  double by_one = 0;
  double by_value = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) by_one += std::abs(used[i] - used[i - 1]);
    const auto [its, is_first] = last.emplace(values[i], used[i]);
    by_value += std::abs(used[i] - its->second);
    its->second = used[i];
  }
  return by_one > kShorter * by_value;
}

}  // namespace

double grain_of_stamp(std::string_view text) {
  Civil civil;
  return read_civil(text, civil) && civil.has_time && !civil.has_seconds ? 60 : 1;
}

void UnnamedReadings::add(double time_s, double used, std::uint64_t line) {
  const double gap_s = times_s_.empty() ? 1e18 : std::abs(time_s - times_s_.back());  // also if the newest come first
  if (gap_s == 0 && shared_++ == 0) first_shared_ = line;
  if (gap_s <= kTogether_s) {
    ++groups_.back();
  } else {
    if (!times_s_.empty()) shortest_gap_s_ = std::min(shortest_gap_s_, gap_s);
    groups_.push_back(1);
  }
  times_s_.push_back(time_s);
  used_.push_back(used);
  lines_.push_back(line);
}

class OrderJudge {
 public:
  OrderJudge(UnnamedReadings& its, const ReadingWords& words) : its_(its), words_(words) {}

  Result<std::size_t> judge(OrderEvidence order, bool runs_begin_anew) {
    const std::size_t in_turn = count_in_turn();
    const bool may = order == OrderEvidence::may || (order == OrderEvidence::if_in_turn && in_turn == constant()) ||
                     (order == OrderEvidence::if_two && in_turn == 2 && constant() == 2);
    if (const std::size_t n = may ? constant() : 1; n > 1) return is_sampled_often(n) ? 1 : in_order(n);
    sort_if_shuffled();
    if (share_times(order)) {
      if (const std::size_t n = order == OrderEvidence::never ? 1 : constant(); n > 1) return in_order(n);
      return fail(
          fmt::format("several {} with the same time {}{}{}: they belong to several GPUs that cannot be told apart; {}",
                      words_.rows, words_.of, order == OrderEvidence::never ? "" : ", and their number varies",
                      from_line(its_.first_shared_), words_.record));
    }
    if (const std::size_t at = runs_begin_anew ? 0 : joint(); at != 0)
      return fail(fmt::format(
          "two logs of the same time seem to have been joined end to end{}, and their {} {}: they belong to "
          "several GPUs; {}, or analyse the logs one by one",
          from_line(its_.lines_[at]), words_.rows, words_.of, words_.record));
    // The load of one GPU may repeat exactly every few readings, but not every second reading.
    if (count_interleaved(its_.used_) == 2 || are_merged(its_.times_s_, its_.used_))
      return fail(
          fmt::format("the {0} that {1} seem to belong to several GPUs, or to several logs that were merged: they jump "
                      "from {2} to {2} between levels that each stay even; {3}, or analyse the logs one by one",
                      words_.rows, words_.of, words_.rows.substr(0, words_.rows.size() - 1), words_.record));
    return 1;
  }

 private:
  static std::string from_line(std::uint64_t line) { return line == 0 ? "" : fmt::format(" (from line {})", line); }

  /// The number of readings per time if it is constant, or usual; otherwise 1. The last time may be incomplete.
  [[nodiscard]] std::size_t constant() const {
    const auto& groups = its_.groups_;
    if (groups.size() < 3 || its_.shortest_gap_s_ < 4 * kTogether_s) return 1;
    const auto end = groups.end() - 1;
    if (std::all_of(groups.begin(), end, [&](std::size_t n) { return n == groups.front(); })) return groups.front();
    return usual();
  }

  /// The most common number of readings per time, and how many times have that number. REQUIRES: there is a reading.
  [[nodiscard]] std::pair<std::size_t, std::size_t> most_frequent_size() const {
    std::map<std::size_t, std::size_t> times;
    for (const std::size_t n : its_.groups_) ++times[n];
    return *logtext::most_frequent(times);
  }

  /// The most common number of readings per time, if their levels alternate or two thirds of the times have that
  /// number; otherwise 1.
  [[nodiscard]] std::size_t usual() const {
    const auto [most, whole] = most_frequent_size();
    if (most < 2 || whole < 3) return 1;
    if (alternate(whole_readings(most), most)) return most;
    if (whole * 3 < its_.groups_.size() * 2) return 1;
    // Two readings of one GPU may occasionally fall within one second.
    return its_.shortest_gap_s_ >= kGrainsApart * words_.grain_s || has_fractions() ? most : 1;
  }

  /// How many levels the readings go through in turn; 1 if they do not. An odd time shifts all later readings, so only
  /// those at times with the most common number of readings count.
  [[nodiscard]] std::size_t count_in_turn() const {
    if (its_.empty()) return 1;
    const auto [most, whole] = most_frequent_size();
    return whole >= 3 && alternate(whole_readings(most), most) ? most : count_interleaved(its_.used_);
  }

  /// Whether the readings of a time, `n` each, are of one GPU that grows: it is read several times within the
  /// resolution of the times, and goes on from one reading to the next, within a time as from one to the next.
  [[nodiscard]] bool is_sampled_often(std::size_t n) const {
    constexpr double kMost = 0.6;
    if (its_.shortest_gap_s_ >= kGrainsApart * words_.grain_s || has_fractions()) return false;
    const std::vector<double> used = whole_readings(n);
    double within = 0, between = 0, by_n = 0;
    for (std::size_t i = n; i < used.size(); ++i) {
      (i % n == 0 ? between : within) += std::abs(used[i] - used[i - 1]);
      by_n += std::abs(used[i] - used[i - n]);
    }
    const auto of_time = static_cast<double>(n);
    return by_n > std::max(kMost * of_time, 1.5) * (within + between) && within > between * (of_time - 1) / 2;
  }

  [[nodiscard]] bool has_fractions() const {
    return std::any_of(its_.times_s_.begin(), its_.times_s_.end(),
                       [](double time_s) { return time_s != std::floor(time_s); });
  }

  /// The used memory at the times that have `n` readings.
  [[nodiscard]] std::vector<double> whole_readings(std::size_t n) const {
    std::vector<double> out;
    auto at = its_.used_.begin();
    for (const std::size_t group : its_.groups_) {
      const auto end = at + static_cast<std::ptrdiff_t>(group);
      if (group == n) out.insert(out.end(), at, end);
      at = end;
    }
    return out;
  }

  /// Returns `n` GPUs, unless their order changes.
  Result<std::size_t> in_order(std::size_t n) const {
    if (!changes_order(n)) return n;
    return fail(
        fmt::format("{} {} with the same time {}, and their order changes: they belong to several GPUs that cannot be "
                    "told apart; {}",
                    n, words_.rows, words_.of, words_.record));
  }

  /// Whether the readings of each time are in no order: when sorted by size, each position is many times steadier. A
  /// single time in another order does not count.
  [[nodiscard]] bool changes_order(std::size_t n) const {
    constexpr std::size_t kFewest = 16;
    constexpr double kSteadier = 8;
    const std::vector<double> used = whole_readings(n);
    const std::size_t times = used.size() / n;
    if (times < kFewest) return false;
    const auto steps = [&](bool sorted) {  // from one time to the next
      std::vector<double> out;
      std::vector<double> last;
      for (std::size_t i = 0; i < times; ++i) {
        const auto begin = used.begin() + static_cast<std::ptrdiff_t>(i * n);
        std::vector<double> now(begin, begin + static_cast<std::ptrdiff_t>(n));
        if (sorted) std::sort(now.begin(), now.end());
        double sum = 0;
        for (std::size_t k = 0; k < last.size(); ++k) sum += std::abs(now[k] - last[k]);
        out.push_back(sum);
        last = std::move(now);
      }
      return out;
    };
    const std::vector<double> written = steps(false);
    const std::vector<double> sorted = steps(true);
    const auto sum = [](const std::vector<double>& values) {
      return std::accumulate(values.begin(), values.end(), 0.0);
    };
    if (sum(written) <= kSteadier * sum(sorted)) return false;
    std::size_t changes = 0;
    for (std::size_t i = 0; i < times; ++i) changes += written[i] > kSteadier * sorted[i] ? 1U : 0U;
    constexpr std::size_t kOfOneTime = 2;  // one to its order, and one back
    return changes > kOfOneTime && changes * 10 > times;
  }

  /// Sorts by time if the readings are in no order at all; a few backward steps are due to a clock, or to several runs.
  void sort_if_shuffled() {
    std::size_t back = 0;
    const auto& times_s = its_.times_s_;
    for (std::size_t i = 1; i < times_s.size(); ++i) back += times_s[i] < times_s[i - 1] ? 1U : 0U;
    if (back * 10 < times_s.size() || back * 10 > times_s.size() * 9) return;
    std::vector<std::tuple<double, double, std::uint64_t>> rows;
    for (std::size_t i = 0; i < times_s.size(); ++i) rows.emplace_back(times_s[i], its_.used_[i], its_.lines_[i]);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
    its_ = {};
    for (const auto& [time_s, value, line] : rows) its_.add(time_s, value, line);
  }

  /// Whether many readings share their time with another, and not because several were taken within one second.
  [[nodiscard]] bool share_times(OrderEvidence order) const {
    if (its_.groups_.size() < 3 || its_.shared_ * 10 < its_.times_s_.size()) return false;
    const std::size_t in_turn = count_in_turn();
    if (order == OrderEvidence::if_two) return in_turn == 2;
    return in_turn > 1 || (order != OrderEvidence::if_in_turn && its_.shortest_gap_s_ >= kGrainsApart * words_.grain_s);
  }

  /// Where two logs of the same period were joined; 0 if nowhere. There, time goes back over many readings of both, and
  /// only there does the used memory jump. Setting a clock does not change the used memory.
  [[nodiscard]] std::size_t joint() const {
    constexpr std::size_t kFewest = 16;
    constexpr double kMuch = 0.25;
    constexpr double kJump = 8;
    const auto& times_s = its_.times_s_;
    const auto& used = its_.used_;
    std::size_t at = 0;
    double longest = 0;  // largest change of used memory, apart from that jump
    for (std::size_t i = 1; i < times_s.size(); ++i) {
      if (times_s[i] < times_s[i - 1] - kGrainsApart * words_.grain_s) {
        if (at != 0) return 0;
        at = i;
      } else {
        longest = std::max(longest, std::abs(used[i] - used[i - 1]));
      }
    }
    if (at < kFewest || times_s.size() - at < kFewest) return 0;
    const double back_s = times_s[at - 1] - times_s[at];
    const double shorter_s = std::min(times_s[at - 1] - times_s.front(), times_s.back() - times_s[at]);
    return back_s >= kMuch * shorter_s && std::abs(used[at] - used[at - 1]) > kJump * longest ? at : 0;
  }

  UnnamedReadings& its_;
  const ReadingWords& words_;
};

Result<std::size_t> count_gpus_by_order(UnnamedReadings readings, OrderEvidence order, bool runs_begin_anew,
                                        const ReadingWords& words) {
  return OrderJudge(readings, words).judge(order, runs_begin_anew);
}

Status check_alternating(std::span<const double> used) {
  const std::size_t n = count_interleaved(used);
  if (n <= 1) return {};
  return fail(fmt::format(
      "the rows seem to alternate between {} GPUs, but they neither name them nor have a time; record index or "
      "uuid, and timestamp",
      n));
}

bool may_be_id(std::string_view title) {
  const ColumnRole role = classify_column(title).role;
  if (role != ColumnRole::other && role != ColumnRole::device_name && role != ColumnRole::gpu) return false;
  const Label label = read_label(title);
  return !label.measured && !label.rate && counted_by(title).empty();
}

bool goes_round(std::span<const std::string_view> values, std::span<const std::string_view> times,
                std::span<const double> used) {
  constexpr std::size_t kFewestReadings = 3;
  std::map<std::set<std::string_view>, std::size_t> readings;  // keyed by the values of a reading
  std::set<std::string_view> all;
  std::set<std::string_view> reading;
  std::size_t n = 0;
  bool repeats = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string_view value = values[i];
    if (value.find_first_of("0123456789") == std::string_view::npos) return false;
    if (logtext::number_in(value) && !logtext::whole_number<std::uint64_t>(value)) return false;  // a measurement
    all.insert(value);
    repeats |= !reading.insert(value).second;
    if (i + 1 < values.size() && times[i + 1] == times[i]) continue;
    ++n;
    if (!repeats) ++readings[reading];
    reading.clear();
    repeats = false;
  }
  if (n < kFewestReadings || readings.empty()) return false;
  const auto usual = logtext::most_frequent(readings);
  return usual->first.size() > 1 && usual->first == all && usual->second * 3 >= n * 2 &&
         (used.empty() || keep_to_levels(values, used));
}

bool repeat_ids(std::span<const std::string_view> numbers, std::span<const std::string_view> ids) {
  std::map<std::string_view, std::string_view> id_of, number_of;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!logtext::whole_number<std::uint64_t>(numbers[i]) ||
        id_of.try_emplace(numbers[i], ids[i]).first->second != ids[i] ||
        number_of.try_emplace(ids[i], numbers[i]).first->second != numbers[i])
      return false;
  return id_of.size() > 1;
}

std::string distinguished_by(std::string_view title) {
  return fmt::format("'{}' is read as the id of a GPU: each of its values occurs once in a reading",
                     logtext::excerpt(title));
}

std::string distinguished_by_order(std::size_t gpus) {
  return fmt::format(
      "{} rows per reading and no GPU index: the rows are assumed to be {} GPUs in that order; record index or uuid as "
      "well",
      gpus, gpus);
}

std::string reading_of_another_size(std::size_t rows, std::size_t gpus) {
  return fmt::format("a row of a reading of {}, where others have {} and none names its GPU", rows, gpus);
}

namespace {

constexpr std::size_t kMostSeries = 16;

/// Whether the path over every `n`th value is many times shorter than that over all values, both from value `from` on.
bool is_shorter_by(std::span<const double> values, std::size_t n, std::size_t from) {
  double by_one = 0;
  double by_n = 0;
  for (std::size_t i = from; i < values.size(); ++i) {
    by_one += std::abs(values[i] - values[i - 1]);
    by_n += std::abs(values[i] - values[i - n]);
  }
  return by_one > kShorter * by_n;
}

/// Whether the first `n` levels, as a cycle, rise except for one step down, or fall except for one step up: this is one
/// series that climbs and restarts. The levels of n GPUs have such an order by chance in 2 n of n! cases, 1 in 60 for
/// six; fewer prove nothing.
bool is_sawtooth(std::span<const double> values, std::size_t n) {
  constexpr std::size_t kFewest = 6;
  if (n < kFewest) return false;
  std::size_t rises = 0;
  std::size_t falls = 0;
  for (std::size_t i = 0; i < n; ++i) {
    rises += values[(i + 1) % n] > values[i] ? 1U : 0U;
    falls += values[(i + 1) % n] < values[i] ? 1U : 0U;
  }
  return rises == 1 || falls == 1;
}

}  // namespace

std::size_t count_interleaved(std::span<const double> values) {
  if (values.size() < 2 * kMostSeries) return 1;
  for (std::size_t n = 2; n <= kMostSeries; ++n)
    if (is_shorter_by(values, n, kMostSeries)) return is_sawtooth(values, n) ? 1 : n;
  return 1;
}

bool alternate(std::span<const double> values, std::size_t n) {
  constexpr std::size_t kFewest = 12;
  return n > 1 && values.size() >= std::max(kFewest, 3 * n) && is_shorter_by(values, n, n) && !is_sawtooth(values, n);
}

namespace {

/// The share of the gaps between `times_s` that are about as long as the median gap, or as the previous gap: two series
/// that cross may swap paths there, and then have each other's period.
double evenness(const std::vector<double>& times_s) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times_s.size(); ++i) gaps.push_back(times_s[i] - times_s[i - 1]);
  if (gaps.empty()) return 0;
  const auto alike = [](double gap, double other) {
    constexpr double kAbout = 0.2;
    return std::abs(gap - other) <= kAbout * std::abs(other);
  };
  std::size_t as_before = 0;
  for (std::size_t i = 1; i < gaps.size(); ++i) as_before += alike(gaps[i], gaps[i - 1]) ? 1U : 0U;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  const double median = *middle;
  const auto even = std::count_if(gaps.begin(), gaps.end(), [&](double gap) { return alike(gap, median); });
  return static_cast<double>(std::max(as_before, static_cast<std::size_t>(even))) / static_cast<double>(gaps.size());
}

}  // namespace

bool are_merged(std::span<const double> times_s, std::span<const double> values) {
  constexpr std::size_t kFewest = 32;
  constexpr double kEven = 0.8;
  constexpr double kUneven = 0.6;
  if (values.size() < kFewest || values.size() != times_s.size()) return false;
  double by_one = 0;
  double longest = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double step = std::abs(values[i] - values[i - 1]);
    by_one += step;
    longest = std::max(longest, step);
  }
  struct Path {
    double last = 0;
    double path_length = 0;
    std::vector<double> times_s;
  };
  std::array<Path, 2> paths;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    const bool second_is_nearer = paths[1].times_s.empty()
                                      ? !paths[0].times_s.empty() && std::abs(v - paths[0].last) > longest / 2
                                      : std::abs(v - paths[1].last) < std::abs(v - paths[0].last);
    Path& path = paths[second_is_nearer ? 1 : 0];
    if (!path.times_s.empty()) path.path_length += std::abs(v - path.last);
    path.last = v;
    path.times_s.push_back(times_s[i]);
  }
  if (std::min(paths[0].times_s.size(), paths[1].times_s.size()) * 8 < values.size()) return false;
  if (by_one <= kShorter * (paths[0].path_length + paths[1].path_length)) return false;
  return evenness(paths[0].times_s) >= kEven && evenness(paths[1].times_s) >= kEven &&
         evenness({times_s.begin(), times_s.end()}) <= kUneven;
}

namespace {

/// A machine's GPUs are numbered below this.
constexpr std::uint64_t kMostGpus = 64;

/// Whether each owner has the same numbers at nearly all times, as a process stays on its GPUs, and all together are
/// successive small numbers. What is measured changes.
bool stay_with_owners(std::span<const std::string_view> values, std::span<const std::string_view> times,
                      std::span<const std::string> owners) {
  constexpr double kNearlyAll = 0.98;
  std::set<std::uint64_t> numbers;
  std::map<std::string_view, std::map<std::string_view, std::set<std::uint64_t>>> at;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto number = logtext::whole_number<std::uint64_t>(values[i]);
    if (!number || *number >= kMostGpus) return false;
    numbers.insert(*number);
    at[owners[i]][times[i]].insert(*number);
  }
  if (numbers.size() < 2 || *numbers.rbegin() - *numbers.begin() + 1 != numbers.size()) return false;
  if (at.size() < 2) return false;
  std::size_t readings = 0;
  std::size_t usual = 0;
  for (const auto& [owner, sets] : at) {
    std::map<std::set<std::uint64_t>, std::size_t> counts;
    for (const auto& [time, its] : sets) ++counts[its];
    usual += logtext::most_frequent(counts)->second;
    readings += sets.size();
  }
  return static_cast<double>(usual) >= kNearlyAll * static_cast<double>(readings);
}

}  // namespace

bool numbers_gpus(std::span<const std::string_view> values, std::span<const std::string_view> times,
                  const RecordOwners& owners, bool has_time) {
  if (std::all_of(values.begin(), values.end(), [](std::string_view value) {
        const auto number = logtext::whole_number<std::uint64_t>(value);
        return number && *number >= kMostGpus;
      }))
    return false;
  struct Numbers {
    std::vector<std::string_view> values, times;
    [[nodiscard]] bool counts(bool has_time) const {
      std::vector<std::vector<std::string_view>> rows;
      for (std::size_t i = 0; i < values.size(); ++i) rows.push_back({values[i], times[i]});
      return behaves_like_index(rows, 0, has_time ? 1 : -1) || goes_round(values, times);
    }
  };
  const Numbers all{{values.begin(), values.end()}, {times.begin(), times.end()}};
  if (all.counts(has_time)) return true;
  constexpr std::size_t kFewestRows = 4;
  std::map<std::string_view, Numbers> of_origin;
  for (std::size_t i = 0; i < owners.origins.size(); ++i) {
    Numbers& column = of_origin[owners.origins[i]];
    column.values.push_back(values[i]);
    column.times.push_back(times[i]);
  }
  if (of_origin.size() > 1 && std::all_of(of_origin.begin(), of_origin.end(), [&](const auto& of) {
        return of.second.values.size() >= kFewestRows && of.second.counts(has_time);
      }))
    return true;
  return has_time && !owners.processes.empty() && stay_with_owners(values, times, owners.processes);
}

}  // namespace vramtrack

#include "source/log/csv_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "source/log/csv_clock.hpp"
#include "source/log/interleave.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using Rows = std::vector<std::vector<std::string_view>>;

/// Rows closer together than this belong to one reading.
constexpr double kTogether_s = 0.1;
/// Several readings may share a time in whole seconds; readings this far apart always have different times.
constexpr double kApart_s = 1.9;

constexpr std::string_view kRecord = "record index or uuid of each GPU";

std::string_view cell(const std::vector<std::string_view>& row, int column) {
  return row[static_cast<std::size_t>(column)];
}

/// The rows of one index.
struct Readings {
  std::vector<double> times_s;
  std::vector<double> used;
  std::vector<std::size_t> groups;  ///< rows of each time
  double shortest_gap_s = 1e18;     ///< between two times
  std::size_t shared = 0;           ///< rows that share the time of the previous row

  void add(double time_s, double value) {
    const double gap_s = times_s.empty() ? 1e18 : std::abs(time_s - times_s.back());  // newest first, too
    if (gap_s <= kTogether_s) {
      ++groups.back();
      ++shared;
    } else {
      if (!times_s.empty()) shortest_gap_s = std::min(shortest_gap_s, gap_s);
      groups.push_back(1);
    }
    times_s.push_back(time_s);
    used.push_back(value);
  }
  /// The number of rows per time if it is constant, else 1. The last time may be incomplete.
  [[nodiscard]] std::size_t constant() const {
    if (groups.size() < 3 || shortest_gap_s < 4 * kTogether_s) return 1;
    const auto end = groups.end() - 1;
    return std::all_of(groups.begin(), end, [&](std::size_t n) { return n == groups.front(); }) ? groups.front() : 1;
  }
  /// Sorts by time if the rows are in no order at all; a few steps back are due to a clock, or to several runs.
  void sort_if_shuffled() {
    std::size_t back = 0;
    for (std::size_t i = 1; i < times_s.size(); ++i) back += times_s[i] < times_s[i - 1] ? 1U : 0U;
    if (back * 10 < times_s.size() || back * 10 > times_s.size() * 9) return;
    std::vector<std::pair<double, double>> rows;
    for (std::size_t i = 0; i < times_s.size(); ++i) rows.emplace_back(times_s[i], used[i]);
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    *this = {};
    for (const auto& [time_s, value] : rows) add(time_s, value);
  }
  /// Whether two logs of the same period were joined: time goes back over nearly all of one of them, and the used
  /// memory jumps there as it does nowhere else. Setting a clock does not change the used memory.
  [[nodiscard]] bool are_joined() const {
    constexpr std::size_t kFewest = 16;
    constexpr double kNearlyAll = 0.9;
    constexpr double kJump = 8;
    std::size_t at = 0;
    double longest = 0;  // change of used memory, other than that jump
    for (std::size_t i = 1; i < times_s.size(); ++i) {
      if (times_s[i] < times_s[i - 1] - kApart_s) {
        if (at != 0) return false;
        at = i;
      } else {
        longest = std::max(longest, std::abs(used[i] - used[i - 1]));
      }
    }
    if (at < kFewest || times_s.size() - at < kFewest) return false;
    const double back_s = times_s[at - 1] - times_s[at];
    const double shorter_s = std::min(times_s[at - 1] - times_s.front(), times_s.back() - times_s[at]);
    return back_s >= kNearlyAll * shorter_s && std::abs(used[at] - used[at - 1]) > kJump * longest;
  }
  /// Whether many rows share their time with another, and not because several readings were taken within one second.
  [[nodiscard]] bool share_times() const {
    return groups.size() >= 3 && shared * 10 >= times_s.size() && shortest_gap_s >= kApart_s;
  }
};

std::map<std::string_view, Readings> readings_of(const Rows& rows, const ColumnPlan& plan, StampReader& stamp,
                                                 bool comma) {
  std::map<std::string_view, Readings> out;
  std::string joined;
  for (const auto& row : rows) {
    Timestamp time;
    std::string_view text = cell(row, plan.time);
    if (plan.date >= 0) {
      joined = std::string(cell(row, plan.date)) + ' ' + std::string(text);
      text = joined;
    }
    logtext::Decimal number;
    if (!stamp.read(text, time)) continue;
    if (!logtext::read_decimal(cell(row, plan.used >= 0 ? plan.used : plan.free), number, comma)) continue;
    out[plan.index >= 0 ? cell(row, plan.index) : std::string_view{}].add(seconds_between(Timestamp{}, time),
                                                                          number.value());
  }
  return out;
}

/// Without a time, the alternating rows of several GPUs would be read as one GPU whose memory jumps.
Status check_in_turn(const Rows& rows, const ColumnPlan& plan, bool comma) {
  std::vector<double> used;
  for (const auto& row : rows) {
    if (plan.index >= 0 && cell(row, plan.index) != cell(rows.front(), plan.index)) return {};
    logtext::Decimal number;
    if (logtext::read_decimal(cell(row, plan.used), number, comma)) used.push_back(number.value());
  }
  const std::size_t n = count_interleaved(used);
  if (n <= 1) return {};
  return fail(
      fmt::format("the rows seem to alternate between {} GPUs, but neither name them nor have a time; record index or "
                  "uuid, and timestamp",
                  n));
}

}  // namespace

Result<std::size_t> settle_places(const Rows& rows, std::string_view head, StampReader stamp, bool comma,
                                  ColumnPlan& plan, std::vector<std::string>& assumptions) {
  const bool named = plan.uuid >= 0 || plan.pci >= 0 || plan.pid >= 0 || !plan.series.empty() || !plan.wide.empty();
  if (named || (plan.used < 0 && plan.free < 0)) return 1;
  const auto in_order = [&](std::size_t n) {
    if (n > 1)
      assumptions.push_back(
          fmt::format("{} rows per reading and no GPU index: the rows are assumed to be {} GPUs in that order; "
                      "record index or uuid as well",
                      n, n));
    return n;
  };
  if (plan.clock_lines) return in_order(plan.index < 0 ? count_rows_a_date(head, plan) : 1);
  if (plan.time < 0) {
    if (plan.used >= 0)
      if (Status ok = check_in_turn(rows, plan, comma); !ok) return fail(std::move(ok.error()));
    return 1;
  }
  auto series = readings_of(rows, plan, stamp, comma);
  if (plan.index < 0 && plan.date < 0 && !series.empty())
    if (const std::size_t n = series.begin()->second.constant(); n > 1) return in_order(n);
  for (auto& [index, its] : series) {
    its.sort_if_shuffled();
    const std::string of =
        plan.index >= 0 ? fmt::format("have the index '{}'", logtext::excerpt(index, 24)) : "name no GPU";
    if (its.share_times() ||
        (its.groups.size() >= 3 && its.shared * 10 >= its.times_s.size() && count_interleaved(its.used) > 1)) {
      if (plan.index >= 0 && series.size() == 1 && its.constant() > 1) {
        const std::size_t n = its.constant();
        assumptions.push_back(
            fmt::format("{} rows per reading all have the index '{}', so it does not distinguish GPUs: the rows are "
                        "assumed to be {} GPUs in that order; record the right index or uuid",
                        n, logtext::excerpt(index, 24), n));
        plan.index = -1;
        return n;
      }
      return fail(
          fmt::format("several rows with the same time {}, and their number varies: they belong to several GPUs that "
                      "cannot be told apart; {}",
                      of, kRecord));
    }
    if (!stamp.is_relative() && its.are_joined())
      return fail(
          fmt::format("two logs of the same time seem to have been joined end to end, and their rows {}: they belong "
                      "to several GPUs; {}, or analyse the logs one by one",
                      of, kRecord));
    // The load of one GPU may repeat exactly every few readings, but not every second reading.
    if (count_interleaved(its.used) == 2 || are_merged(its.times_s, its.used))
      return fail(
          fmt::format("the rows that {} seem to belong to several GPUs, or to several logs that were merged: they jump "
                      "from row to row between levels that each stay even; {}, or analyse the logs one by one",
                      of, kRecord));
  }
  return 1;
}

}  // namespace vramtrack

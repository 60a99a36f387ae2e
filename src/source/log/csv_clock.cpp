#include "source/log/csv_clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>

#include "source/log/clock_choice.hpp"
#include "source/log/line_start.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {
namespace {

using logtext::trim;
using Rows = std::vector<std::vector<std::string_view>>;

/// A few interrupted readings do not mean that the number of rows per reading varies.
constexpr std::size_t kOddOnes = 10;
constexpr std::size_t kMostGpus = 16;  ///< in one machine

/// The cells that distinguish the series of `row` from others.
std::string series_of(const std::vector<std::string_view>& row, const ColumnPlan& plan) {
  std::string key;
  const auto add = [&](int column) {
    if (column < 0) return;
    key += cell(row, column);
    key += '\n';
  };
  for (const int column : {plan.uuid, plan.pci, plan.index, plan.partition, plan.pid}) add(column);
  for (const int column : plan.series) add(column);
  return key;
}

}  // namespace

Status choose_clock_column(const Rows& rows, ColumnPlan& plan, std::vector<std::string>& assumptions) {
  if (!plan.has_header) return {};
  const std::vector<std::string_view> titles = titles_of(plan);
  ClockRecords head;
  for (std::size_t i = 0; i < plan.count; ++i)
    head.fields.push_back(named_field(fmt::format("column {} '{}'", i + 1, logtext::excerpt(titles[i])), titles[i]));
  // A date, or in the first column a unit of time, if no title is more certain.
  if (plan.time >= 0)
    if (ClockField& named = head.fields[static_cast<std::size_t>(plan.time)]; named.counts.empty())
      named.hint = ClockHint::name;
  std::unordered_map<std::string, std::size_t> series;
  for (const auto& row : rows)
    head.series.push_back(series.try_emplace(series_of(row, plan), series.size()).first->second);
  head.value = [&rows](std::size_t field, std::size_t record) { return read_clock_value(rows[record][field]); };
  const auto choice = choose_clock(head, assumptions);
  if (!choice) return fail(choice.error());
  plan.time = choice->time;
  plan.outer_count = choice->outer_count;
  plan.time_title = choice->title;
  return {};
}

std::string ClockLines::take(std::string_view line) {
  constexpr std::size_t kMostWords = 24;
  constexpr std::size_t kLongestWeekday = 12;
  line = trim(line);
  const std::string_view stamp = find_stamp(line);
  Civil civil;
  // Besides the time, the line may contain only marks ("==== ... ====") and a word or two ("Timestamp: ").
  if (!stamp.empty() && line.size() <= stamp.size() + kMostWords) {
    const bool is_dated = date_.empty() || (read_civil(stamp, DateOrder::month_first, civil) && civil.has_date);
    return is_dated ? std::string(stamp) : date_ + ' ' + std::string(stamp);
  }
  // "Tue 08/18/2020"; "03:44 PM" after it.
  const std::size_t digit = std::min(line.find_first_of("0123456789"), line.size());
  if (digit > kLongestWeekday) return {};
  const std::string_view digits = line.substr(digit);
  const auto part = whole_civil(digits);
  if (!part || part->has_date == part->has_time) return {};
  if (part->has_time) return date_.empty() || digit > 0 ? std::string() : date_ + ' ' + std::string(digits);
  date_ = digits;
  return {};
}

std::vector<std::string> clock_lines(std::string_view head) {
  constexpr std::size_t kMost = 600;
  std::vector<std::string> stamps;
  ClockLines clock;
  while (!head.empty() && stamps.size() < kMost)
    if (std::string stamp = clock.take(logtext::take_line(head)); !stamp.empty()) stamps.push_back(std::move(stamp));
  return stamps;
}

namespace {

bool is_row(std::string_view line, const ColumnPlan& plan) {
  std::vector<std::string_view> fields;
  split_fields(line, plan.delimiter, fields);
  return fields.size() == plan.count && !looks_like_header(line, plan.delimiter);
}

}  // namespace

void find_clock_lines(std::string_view head, ColumnPlan& plan) {
  if (plan.time >= 0) return;
  ClockLines clock;
  std::size_t times = 0;
  std::size_t rows = 0;
  while (!head.empty()) {
    const std::string_view line = logtext::take_line(head);
    if (trim(line).empty()) continue;
    const std::string stamp = clock.take(line);
    if (!stamp.empty() && (plan.count > 1 ? !is_row(line, plan) : stamp.size() > 10))
      ++times;
    else if (is_row(line, plan))
      ++rows;
    if (rows > 0 && times == 0) return;
  }
  // A time that many readings share is only mentioned there, such as the start time.
  plan.clock_lines = times > 0 && (plan.pid >= 0 || rows <= kMostGpus * times);
}

std::size_t count_rows_a_reading(std::string_view head, const ColumnPlan& plan) {
  std::vector<std::size_t> readings;
  ClockLines clock;
  while (!head.empty()) {
    const std::string_view line = logtext::take_line(head);
    const bool is_clock = !clock.take(line).empty();
    const bool begins = plan.clock_lines ? is_clock : looks_like_header(line, plan.delimiter);
    if (begins)
      readings.push_back(0);
    else if (!is_clock && !readings.empty() && is_row(line, plan))
      ++readings.back();
  }
  // A single header belongs to the whole log.
  if (readings.empty() || (readings.size() == 1 && !plan.clock_lines)) return 1;
  if (readings.size() > 1) readings.pop_back();  // may be incomplete
  std::map<std::size_t, std::size_t> counts;
  for (const std::size_t n : readings) ++counts[n];
  const auto most = logtext::most_frequent(counts);
  // A reading that was interrupted has fewer rows.
  const bool is_usual =
      most->second * kOddOnes >= readings.size() * (kOddOnes - 1) && std::prev(counts.end())->first == most->first;
  return is_usual && most->first > 0 && most->first <= kMostGpus ? most->first : 1;
}

namespace {

constexpr std::string_view kRecord = "record index or uuid of each GPU";

/// The readings, grouped by the index of their rows; the step count continues across epochs.
std::map<std::string_view, UnnamedReadings> readings_of(const Rows& rows, const ColumnPlan& plan, StampReader& stamp,
                                                        bool comma) {
  std::map<std::string_view, UnnamedReadings> out;
  std::map<std::string_view, EpochCounter> counters;
  for (const auto& row : rows) {
    Timestamp time;
    const std::string text = time_text(row, plan);
    logtext::Decimal number;
    if (!stamp.read(text, time)) continue;
    if (!logtext::read_decimal(cell(row, plan.used >= 0 ? plan.used : plan.free), number, comma)) continue;
    const std::string_view index = plan.index >= 0 ? cell(row, plan.index) : std::string_view{};
    double time_s = seconds_between(Timestamp{}, time);
    if (plan.outer_count >= 0) {
      const auto step = logtext::whole_number<std::uint64_t>(text);
      const auto epoch = logtext::whole_number<std::uint64_t>(cell(row, plan.outer_count));
      if (step && epoch) time_s = static_cast<double>(counters[index].next(*step, *epoch));
    }
    out[index].add(time_s, number.value());
  }
  return out;
}

/// The used, or free, memory in the rows, if they have at most one index; empty if they have several.
std::vector<double> amounts_of(const Rows& rows, const ColumnPlan& plan, bool comma) {
  std::vector<double> used;
  for (const auto& row : rows) {
    if (plan.index >= 0 && cell(row, plan.index) != cell(rows.front(), plan.index)) return {};
    logtext::Decimal number;
    if (logtext::read_decimal(cell(row, plan.used >= 0 ? plan.used : plan.free), number, comma))
      used.push_back(number.value());
  }
  return used;
}

/// The first column that distinguishes the GPUs of a reading, although not by its title; -1 if there is none.
int find_id(const Rows& rows, const ColumnPlan& plan, bool comma) {
  if (!plan.has_header || plan.time < 0) return -1;
  const std::vector<std::string_view> titles = titles_of(plan);
  std::vector<std::string_view> times;
  for (const auto& row : rows) times.push_back(cell(row, plan.time));
  std::vector<double> used;  // used if the time is a count of steps
  if (plan.time_title.step)
    for (const auto& row : rows) {
      logtext::Decimal number;
      const bool is_read = logtext::read_decimal(cell(row, plan.used >= 0 ? plan.used : plan.free), number, comma);
      used.push_back(is_read || used.empty() ? number.value() : used.back());
    }
  for (int i = 0; i < static_cast<int>(plan.count); ++i) {
    const bool is_read = i == plan.time || i == plan.date || i == plan.outer_count || i == plan.used;
    if (is_read || !may_be_id(titles[static_cast<std::size_t>(i)])) continue;
    std::vector<std::string_view> values;
    for (const auto& row : rows) values.push_back(cell(row, i));
    if (goes_round(values, times, used)) return i;
  }
  return -1;
}

}  // namespace

Result<std::size_t> count_unnamed_gpus(const Rows& rows, std::string_view head, StampReader stamp, bool comma,
                                       ColumnPlan& plan, std::vector<std::string>& assumptions) {
  const bool named = plan.uuid >= 0 || plan.pci >= 0 || plan.partition >= 0 || plan.pid >= 0 || !plan.series.empty() ||
                     !plan.distinguishing.empty() || !plan.wide.empty();
  if (named || (plan.used < 0 && plan.free < 0)) return 1;
  const auto in_order = [&](std::size_t n) {
    if (n > 1) assumptions.push_back(distinguished_by_order(n));
    return n;
  };
  const bool is_same = plan.index >= 0 && std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
                         return cell(row, plan.index) == cell(rows.front(), plan.index);
                       });
  if (plan.index < 0 || is_same)
    if (const int id = find_id(rows, plan, comma); id >= 0) {
      assumptions.push_back(distinguished_by(titles_of(plan)[static_cast<std::size_t>(id)]));
      plan.index = id;
      return 1;
    }
  if (plan.time < 0 && plan.index < 0)
    if (const std::size_t n = count_rows_a_reading(head, plan); n > 1) return in_order(n);
  if (plan.clock_lines) return 1;
  if (plan.time < 0) {
    if (Status ok = check_alternating(amounts_of(rows, plan, comma)); !ok) return fail(std::move(ok.error()));
    return 1;
  }
  auto series = readings_of(rows, plan, stamp, comma);
  for (auto& [index, its] : series) {
    ReadingWords words;
    words.record = kRecord;
    words.grain_s = plan.time_title.step ? 1 : grain_of_stamp(cell(rows.front(), plan.time));
    words.of = plan.index >= 0 ? fmt::format("have the index '{}'", logtext::excerpt(index, 24)) : "name no GPU";
    const OrderEvidence order = plan.index < 0       ? plan.date < 0 ? OrderEvidence::may : OrderEvidence::never
                                : series.size() == 1 ? OrderEvidence::if_it_must
                                                     : OrderEvidence::never;
    const auto n = count_gpus_by_order(std::move(its), order, stamp.is_relative() && !stamp.wraps(), words);
    if (!n) return fail(n.error());
    if (*n == 1) continue;
    if (plan.index < 0) return in_order(*n);
    assumptions.push_back(
        fmt::format("{} rows per reading all have the index '{}', so it does not distinguish GPUs: the rows are "
                    "assumed to be {} GPUs in that order; record the right index or uuid",
                    *n, logtext::excerpt(index, 24), *n));
    plan.index = -1;
    return *n;
  }
  return 1;
}

}  // namespace vramtrack

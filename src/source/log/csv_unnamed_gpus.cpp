#include "source/log/csv_unnamed_gpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "source/log/csv_clock.hpp"
#include "source/log/epoch_counter.hpp"
#include "source/log/text.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {
namespace {

using Rows = std::vector<std::vector<std::string_view>>;

constexpr std::string_view kRecord = "record index or uuid of each GPU";

std::string_view cell(const std::vector<std::string_view>& row, int column) {
  return row[static_cast<std::size_t>(column)];
}

/// The readings, grouped by the index of their rows; the step count continues across epochs.
std::map<std::string_view, UnnamedReadings> readings_of(const Rows& rows, const ColumnPlan& plan, StampReader& stamp,
                                                        bool comma) {
  std::map<std::string_view, UnnamedReadings> out;
  std::map<std::string_view, EpochCounter> counters;
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
  return fail(fmt::format(
      "the rows seem to alternate between {} GPUs, but they neither name them nor have a time; record index or "
      "uuid, and timestamp",
      n));
}

}  // namespace

Result<std::size_t> count_unnamed_gpus(const Rows& rows, std::string_view head, StampReader stamp, bool comma,
                                       ColumnPlan& plan, std::vector<std::string>& assumptions) {
  const bool named = plan.uuid >= 0 || plan.pci >= 0 || plan.partition >= 0 || plan.pid >= 0 || !plan.series.empty() ||
                     !plan.wide.empty();
  if (named || (plan.used < 0 && plan.free < 0)) return 1;
  const auto in_order = [&](std::size_t n) {
    if (n > 1)
      assumptions.push_back(
          fmt::format("{} rows per reading and no GPU index: the rows are assumed to be {} GPUs in that order; "
                      "record index or uuid as well",
                      n, n));
    return n;
  };
  if (plan.time < 0 && plan.index < 0)
    if (const std::size_t n = count_rows_a_reading(head, plan); n > 1) return in_order(n);
  if (plan.clock_lines) return 1;
  if (plan.time < 0) {
    if (plan.used >= 0)
      if (Status ok = check_in_turn(rows, plan, comma); !ok) return fail(std::move(ok.error()));
    return 1;
  }
  auto series = readings_of(rows, plan, stamp, comma);
  for (auto& [index, its] : series) {
    ReadingWords words;
    words.record = kRecord;
    words.may_lack_rows = true;
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

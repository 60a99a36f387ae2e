// Infers the columns of a log recorded with noheader from their values: infer_columns(); and checks whether a column of
// numbers is a GPU index: behaves_like_index().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/option.hpp"
#include "core/pci_address.hpp"
#include "core/units.hpp"
#include "source/log/clock_choice.hpp"
#include "source/log/columns.hpp"
#include "source/log/roster.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::Amount;

/// The contents of one column, over all rows.
struct Values {
  std::size_t present = 0, dates = 0, times_of_day = 0, uuids = 0, pcis = 0, sizes = 0, numbers = 0, integers = 0;
  double low = 0, high = 0;
  bool whole_sizes = true;
  std::string_view sample;

  [[nodiscard]] bool all(std::size_t n) const { return present > 0 && n == present; }
  [[nodiscard]] bool is_text() const {
    return present > 0 && dates + times_of_day + uuids + pcis + sizes + numbers == 0;
  }
  [[nodiscard]] bool constant() const { return low >= high; }
};

Values survey(std::span<const std::vector<std::string_view>> rows, std::size_t column) {
  Values v;
  for (const auto& row : rows) {
    if (column >= row.size() || logtext::is_missing(row[column])) continue;
    const std::string_view field = row[column];
    if (v.present++ == 0) v.sample = field;
    Civil civil;
    std::uint64_t bytes = 0;
    bool has_unit = false;
    logtext::Decimal number;
    if (field.starts_with("GPU-") || field.starts_with("MIG-")) {
      ++v.uuids;
    } else if (!pci_address_of(field).empty()) {
      ++v.pcis;
    } else if (logtext::read_decimal(field, number) && number.length == field.size()) {
      const double value = number.value();
      if (v.numbers++ == 0) v.low = v.high = value;
      v.low = std::min(v.low, value);
      v.high = std::max(v.high, value);
      v.integers += number.has_fraction ? 0 : 1;
    } else if (read_civil(field, civil)) {
      v.dates += civil.has_date ? 1 : 0;
      v.times_of_day += !civil.has_date && civil.has_seconds && civil.length == field.size() ? 1U : 0U;
    } else if (logtext::read_amount(field, 1, bytes, false, &has_unit) == Amount::read && has_unit) {
      const auto value = static_cast<double>(bytes);
      v.whole_sizes &= field.find('.') == std::string_view::npos;
      if (v.sizes++ == 0) v.low = v.high = value;
      v.low = std::min(v.low, value);
      v.high = std::max(v.high, value);
    }
  }
  return v;
}

using Rows = std::span<const std::vector<std::string_view>>;

/// How two columns of memory relate to each other, over all rows.
struct Relation {
  bool below = true;         ///< the first is never above the second
  bool first_fixed = true;   ///< the first is constant for each GPU
  bool second_fixed = true;  ///< the second is constant for each GPU
  bool sum_fixed = true;     ///< their sum is constant for each GPU, except for rounding
  bool alike = true;         ///< they are equal throughout
  int rises = 0;             ///< of the first, from one row of a GPU to the next
  int falls = 0;
};

Relation relate(Rows rows, std::size_t first, std::size_t second, int key) {
  /// Each amount was rounded, and the driver's own share varies.
  constexpr std::uint64_t kRounding = 2 * kBytesPerMiB;
  constexpr std::uint64_t kOfTheChange = 100;
  struct Range {
    std::uint64_t low, high;
    void take(std::uint64_t value) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    [[nodiscard]] std::uint64_t width() const { return high - low; }
  };
  struct Gpu {
    Range first, second, sum;
    std::uint64_t last;  ///< in the first column
  };
  std::map<std::string_view, Gpu> gpus;
  Relation out;
  for (const auto& row : rows) {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    if (std::max(first, second) >= row.size() || logtext::read_amount(row[first], kBytesPerMiB, a) != Amount::read ||
        logtext::read_amount(row[second], kBytesPerMiB, b) != Amount::read)
      continue;
    const auto id = key >= 0 && static_cast<std::size_t>(key) < row.size() ? row[static_cast<std::size_t>(key)] : "";
    Gpu& gpu = gpus.try_emplace(id, Gpu{{a, a}, {b, b}, {a + b, a + b}, a}).first->second;
    out.rises += a > gpu.last ? 1 : 0;
    out.falls += a < gpu.last ? 1 : 0;
    gpu.last = a;
    gpu.first.take(a);
    gpu.second.take(b);
    gpu.sum.take(a + b);
    out.below &= a <= b;
    out.alike &= a == b;
  }
  for (const auto& [id, gpu] : gpus) {
    out.first_fixed &= gpu.first.width() == 0;
    out.second_fixed &= gpu.second.width() == 0;
    out.sum_fixed &= gpu.sum.width() <= kRounding + gpu.first.width() / kOfTheChange;
  }
  return out;
}

/// Three columns of which two add up to the third: used, free and total memory.
struct Parts {
  std::size_t first, second, whole;
};

/// The only three of the columns `memory` that are so in every row, except for the memory that the driver reserves,
/// with a third that is constant for each GPU; nullopt: there are none, or several. `may_stay`: the two need not vary.
std::optional<Parts> find_parts(Rows rows, const std::vector<std::size_t>& memory, int key, bool may_stay) {
  constexpr std::size_t kMostOf = 16;  // each three of them are compared
  if (memory.size() > kMostOf) return std::nullopt;
  constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 30U;  // of a small card
  constexpr std::uint64_t kOfTheWhole = 16;
  constexpr std::uint64_t kRounding = kBytesPerMiB;
  const auto add_up = [&](const Parts& parts) {
    bool has_row = false;
    for (const auto& row : rows) {
      std::uint64_t bytes[3];
      std::size_t n = 0;
      for (const std::size_t at : {parts.first, parts.second, parts.whole})
        if (at < row.size() && logtext::read_amount(row[at], kBytesPerMiB, bytes[n]) == Amount::read) ++n;
      if (n < 3) continue;
      has_row = true;
      const std::uint64_t sum = bytes[0] + bytes[1];
      if (sum > bytes[2] + kRounding || sum + std::max(kMostReserved, bytes[2] / kOfTheWhole) < bytes[2]) return false;
    }
    const Relation halves = relate(rows, parts.first, parts.second, key);
    return has_row && halves.sum_fixed && (may_stay || (!halves.first_fixed && !halves.second_fixed)) &&
           relate(rows, parts.first, parts.whole, key).second_fixed;
  };
  std::optional<Parts> found;
  for (const std::size_t whole : memory)
    for (const std::size_t first : memory)
      for (const std::size_t second : memory) {
        const Parts parts{first, second, whole};
        if (first >= second || first == whole || second == whole || !add_up(parts)) continue;
        if (found) return std::nullopt;
        found = parts;
      }
  return found;
}

/// For two columns with a constant sum: whether the first is the used memory; nullopt if their values do not show it.
/// Programs take memory in many small steps and release it in a few large ones, so used memory rises more often than it
/// falls, and free memory falls more often than it rises. The difference must exceed what chance explains (three
/// standard deviations of the sign test).
std::optional<bool> first_is_used(Rows rows, const Relation& relation, int time) {
  const double steps = relation.rises + relation.falls;
  const double more_rises = relation.rises - relation.falls;
  constexpr double kFewest = 10;
  if (steps < kFewest || std::abs(more_rises) < 3 * std::sqrt(steps)) return std::nullopt;
  const auto stamp = [time](const std::vector<std::string_view>& row) {
    return time >= 0 && static_cast<std::size_t>(time) < row.size() ? row[static_cast<std::size_t>(time)] : "";
  };
  const bool newest_first = stamp(rows.back()) < stamp(rows.front());
  return (more_rises > 0) != newest_first;
}

bool looks_like_gpu_name(std::string_view text) {
  const std::string name = logtext::lower(text);
  for (const std::string_view word :
       {"nvidia", "tesla", "quadro", "geforce", "rtx", "gtx", "titan", "orin", "xavier", "a100", "h100"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

constexpr double kLeastTotal = 1000;  ///< MiB; no GPU has less
constexpr double kMostPercent = 100;

constexpr std::string_view kAsk =
    "put the header line back as the first line, for example 'timestamp, index, memory.used [MiB], memory.total [MiB]'";

/// The first row, for messages.
std::string example(Rows rows) {
  const std::vector<std::string_view>& row = rows.front();
  const std::string_view last = row.back();
  const std::string_view line(row.front().data(),
                              static_cast<std::size_t>(last.data() + last.size() - row.front().data()));
  return logtext::excerpt(line, 100);
}

/// An error that explains why the columns of `rows` cannot be identified, and quotes one of the rows.
tl::unexpected<Error> cannot_identify(Rows rows, std::string_view why) {
  return fail(fmt::format("there is no header line, and in rows such as '{}', {}; {}, or name the values with {}",
                          example(rows), why, kAsk, name_of(Option::line_pattern)));
}

/// Chooses the clock by the values: see choose_clock(). A date without a time is the clock only if nothing is surer.
Status choose_clock_column(Rows rows, const std::vector<Values>& columns, ColumnPlan& plan,
                           std::vector<std::string>& assumptions) {
  ClockRecords head;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Values& v = columns[i];
    const bool may_be = v.all(v.dates) || v.all(v.times_of_day) || v.all(v.numbers);
    head.fields.push_back({fmt::format("column {}", i + 1), may_be ? ClockHint::untitled : ClockHint::none});
  }
  head.series.assign(rows.size(), 0);
  head.value = [rows](std::size_t field, std::size_t record) {
    return field < rows[record].size() ? read_clock_value(rows[record][field]) : ClockValue{};
  };
  const auto choice = choose_clock(head, assumptions);
  if (!choice) return fail(choice.error());
  plan.time = choice->time;
  for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
    const Values& v = columns[static_cast<std::size_t>(i)];
    if (!v.all(v.dates) || plan.date >= 0 || read_clock_value(v.sample).form == ClockValue::Form::date) continue;
    const bool is_apart = plan.time >= 0 && columns[static_cast<std::size_t>(plan.time)].times_of_day > 0;
    if (plan.time < 0 || is_apart) (is_apart ? plan.date : plan.time) = i;
  }
  return {};
}

}  // namespace

Result<ColumnPlan> infer_columns(std::span<const std::vector<std::string_view>> rows, char delimiter, bool dated,
                                 std::vector<std::string>& assumptions) {
  ColumnPlan plan;
  plan.delimiter = delimiter;
  plan.has_header = false;
  for (const auto& row : rows) plan.count = std::max(plan.count, row.size());
  std::vector<Values> columns;
  for (std::size_t i = 0; i < plan.count; ++i) columns.push_back(survey(rows, i));

  if (Status ok = choose_clock_column(rows, columns, plan, assumptions); !ok) return fail(std::move(ok.error()));

  std::vector<std::size_t> sizes;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Values& v = columns[i];
    const int at = static_cast<int>(i);
    if (at == plan.time) continue;
    if (plan.uuid < 0 && v.all(v.uuids))
      plan.uuid = at;
    else if (plan.pci < 0 && v.all(v.pcis))
      plan.pci = at;
    else if (v.all(v.sizes))
      sizes.push_back(i);
    else if (v.all(v.numbers))
      numbers.push_back(i);
  }
  // A process list: a pid followed by a command. (A GPU's name follows its index, and a temperature is below 128.)
  for (const std::size_t i : numbers) {
    const Values& v = columns[i];
    if (plan.pid >= 0 || !v.all(v.integers) || v.low < 128) continue;
    const auto has_letter = [](std::string_view text) {
      return std::any_of(text.begin(), text.end(), logtext::is_ascii_letter);
    };
    if (i + 1 < columns.size() && columns[i + 1].is_text() && has_letter(columns[i + 1].sample) &&
        !looks_like_gpu_name(columns[i + 1].sample)) {
      plan.pid = static_cast<int>(i);
      plan.process_name = static_cast<int>(i) + 1;
    }
  }
  if (plan.pid >= 0) std::erase(numbers, static_cast<std::size_t>(plan.pid));
  for (std::size_t i = 0; i < columns.size() && plan.device_name < 0; ++i)
    if (columns[i].is_text() && static_cast<int>(i) != plan.process_name && looks_like_gpu_name(columns[i].sample))
      plan.device_name = static_cast<int>(i);

  // An index is a small whole number near the front that cycles through the GPUs.
  if (!numbers.empty() && numbers.size() + sizes.size() > 1) {
    const Values& v = columns[numbers.front()];
    if (numbers.front() <= 2 && v.all(v.integers) && v.high < 32 &&
        behaves_like_index(rows, numbers.front(), plan.time)) {
      plan.index = static_cast<int>(numbers.front());
      numbers.erase(numbers.begin());
    }
  }

  const bool with_units = !sizes.empty();
  const std::vector<std::size_t>& memory = with_units ? sizes : numbers;
  const int key = plan.uuid >= 0 ? plan.uuid : plan.pci >= 0 ? plan.pci : plan.index;
  constexpr double kMostMib = 4e6;  // no GPU has 4 TiB
  const bool in_bytes =
      std::any_of(memory.begin(), memory.end(), [&](std::size_t i) { return columns[i].high >= kMostMib; });
  const double least_total = in_bytes ? kLeastTotal * static_cast<double>(kBytesPerMiB) : kLeastTotal;
  const auto assume = [&](std::string_view columns_text) {
    assumptions.push_back(fmt::format("the log has no header: {}{}; if that is wrong, {}", columns_text,
                                      with_units ? ""
                                      : in_bytes ? " in bytes"
                                                 : " in MiB",
                                      kAsk));
  };
  if (!with_units) plan.used_unit = plan.free_unit = plan.total_unit = in_bytes ? 1 : kBytesPerMiB;
  if (memory.size() == 1 && plan.device_name >= 0 && plan.time < 0 && !dated && plan.pid < 0) {
    std::map<std::string_view, std::string_view> of_model;
    const auto name = static_cast<std::size_t>(plan.device_name);
    const bool is_one_each = std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
      return of_model.try_emplace(row[name], row[memory[0]]).first->second == row[memory[0]];
    });
    if (is_one_each && of_model.size() > 1 && of_model.size() < rows.size())
      return cannot_identify(rows,
                             fmt::format("column {} is the same wherever column {} names the same card, and no row has "
                                         "a time: it is how much memory each card has, not how much is used",
                                         memory[0] + 1, name + 1));
  }
  // nvidia-smi's amounts have none; those of a process or of a container look the same.
  if (columns.size() == 1 && with_units && !dated && !columns[0].whole_sizes)
    return cannot_identify(rows, "nothing says whose memory the amounts with fractions are");
  if (memory.size() == 1 && (plan.time >= 0 || dated || with_units)) {
    plan.used = static_cast<int>(memory[0]);
    assume(fmt::format("column {} is read as used memory", plan.used + 1));
    return plan;
  }

  // Of used, free and total memory, only the total is known by its size: of the others, the used memory rises more
  // often.
  if (plan.pid < 0)
    if (const auto parts = find_parts(rows, memory, key, with_units && memory.size() == 3);
        parts && (with_units || columns[parts->whole].low >= least_total)) {
      const auto first = first_is_used(rows, relate(rows, parts->first, parts->second, key), plan.time);
      if (!first)
        return cannot_identify(
            rows,
            fmt::format("column {0} is the total, and columns {1} and {2} add up to it: either column {1} is the "
                        "used and column {2} the free memory, or column {1} the free and column {2} the used, and "
                        "their values do not show which",
                        parts->whole + 1, parts->first + 1, parts->second + 1));
      plan.used = static_cast<int>(*first ? parts->first : parts->second);
      plan.free = static_cast<int>(*first ? parts->second : parts->first);
      plan.total = static_cast<int>(parts->whole);
      assume(
          fmt::format("columns {} and {} add up to column {}, which is read as total memory, and column {} rises more "
                      "often than it falls, so it is read as used and the other as free memory",
                      parts->first + 1, parts->second + 1, parts->whole + 1, plan.used + 1));
      return plan;
    }

  // The used and total columns are adjacent; the total is constant and never smaller than used.
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::optional<std::pair<std::size_t, std::size_t>> halves;
  for (const std::size_t used : memory)
    for (const std::size_t total : memory) {
      if (used == total || plan.pid >= 0) continue;
      const bool neighbours = memory.size() == 2 || std::max(used, total) - std::min(used, total) == 1;
      if (!neighbours) continue;
      const Relation r = relate(rows, used, total, key);
      // Without units, any constant could be a total, and any small number an amount of used memory. But a GPU has at
      // least 1000 MiB, a column that never exceeds 100 may be a percentage or a temperature, and a column with
      // fractions may be a power draw.
      const bool plausible =
          with_units || (columns[total].low >= least_total && columns[used].high > kMostPercent &&
                         columns[used].all(columns[used].integers) && columns[total].all(columns[total].integers));
      if (plausible && r.below && r.second_fixed && !r.alike) pairs.emplace_back(used, total);
      const bool large = with_units || columns[used].high + columns[total].high >= least_total;
      if (used < total && large && r.sum_fixed && !r.first_fixed && !r.second_fixed) halves = {used, total};
    }
  if (pairs.size() == 1 && !halves) {
    const auto [used, total] = pairs.front();
    // Free memory below a total looks similar, except that it falls where used memory rises.
    if (first_is_used(rows, relate(rows, used, total, key), plan.time) == false)
      return fail(
          fmt::format("is column {} of rows such as '{}' used or free memory? No line names the columns, column {} is "
                      "the total, and "
                      "column {} falls more often than it rises, as free memory does while a program takes more; {}",
                      used + 1, example(rows), total + 1, used + 1, kAsk));
    plan.used = static_cast<int>(used);
    plan.total = static_cast<int>(total);
    assume(fmt::format("column {} is read as used and column {} as total memory", used + 1, total + 1));
    return plan;
  }
  // A leak in one column looks like a release in the other, and either may come first.
  if (halves) {
    if (const auto first = first_is_used(rows, relate(rows, halves->first, halves->second, key), plan.time)) {
      plan.used = static_cast<int>(*first ? halves->first : halves->second);
      plan.free = static_cast<int>(*first ? halves->second : halves->first);
      assume(
          fmt::format("columns {} and {} add up to a constant, and column {} rises more often than it falls, so it is "
                      "read as used and the other as free memory",
                      halves->first + 1, halves->second + 1, plan.used + 1));
      return plan;
    }
    return cannot_identify(rows,
                           fmt::format("columns {} and {} add up to a constant: one is the used and the other the "
                                       "free memory, but their values do not show which is which",
                                       halves->first + 1, halves->second + 1));
  }
  if (memory.empty()) return cannot_identify(rows, "no column holds amounts of memory only");
  std::string numbers_of;
  for (const std::size_t column : memory) numbers_of += fmt::format("{}{}", numbers_of.empty() ? "" : ", ", column + 1);
  return cannot_identify(
      rows,
      memory.size() == 1
          ? fmt::format("column {} may be the used memory, but has neither a unit nor a time beside it", numbers_of)
          : fmt::format("any of the columns {} may be the used memory", numbers_of));
}

namespace {

/// Whether time `a` is before `b`; both are as written in one log.
bool is_before(std::string_view a, std::string_view b) {
  const auto x = logtext::number_in(a);
  const auto y = logtext::number_in(b);
  return x && y ? *x < *y : a < b;
}

}  // namespace

bool behaves_like_index(std::span<const std::vector<std::string_view>> rows, std::size_t column, int time) {
  constexpr int kMost = 1023;
  /// At least this percentage of the steps from one row to the next must lead to the usual successor.
  constexpr std::size_t kRegularPercent = 90;
  std::vector<int> values;
  std::vector<std::string_view> times;
  for (const auto& row : rows) {
    if (column >= row.size() || logtext::is_missing(row[column])) continue;
    if (!logtext::number_in(row[column])) return true;  // a name
    const auto value = logtext::whole_number<int>(row[column]);
    if (!value || *value < 0 || *value > kMost) return false;
    values.push_back(*value);
    const bool timed = time >= 0 && static_cast<std::size_t>(time) < row.size();
    times.push_back(timed ? row[static_cast<std::size_t>(time)] : std::string_view{});
  }
  if (values.size() < 2) return true;

  // A reading contains each GPU at most once.
  std::vector<int> reading;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && (time < 0 || times[i] != times[i - 1])) reading.clear();
    if (std::find(reading.begin(), reading.end(), values[i]) != reading.end()) return false;
    reading.push_back(values[i]);
  }
  // One GPU is listed after another: the time restarts with each.
  std::size_t runs = 1;
  std::size_t restarts = 0;
  std::map<int, std::map<int, std::size_t>> follows;
  for (std::size_t i = 1; i < values.size(); ++i) {
    ++follows[values[i - 1]][values[i]];
    if (values[i] == values[i - 1]) continue;
    ++runs;
    if (is_before(times[i], times[i - 1])) ++restarts;
  }
  follows.try_emplace(values.back());
  if (runs == follows.size() && restarts + 1 == runs) return true;  // a constant is one run
  // The GPUs are listed in rounds: each one is always followed by the same next one.
  std::size_t usual = 0;
  for (const auto& [value, next] : follows) {
    std::size_t most = 0;
    for (const auto& [other, n] : next)
      if (other != value) most = std::max(most, n);
    usual += most;
  }
  return usual * 100 >= (values.size() - 1) * kRegularPercent;
}

}  // namespace vramtrack

// Determines the layout of a CSV log from its head: the header or the columns' values, the clock, the units.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/cells.hpp"
#include "source/log/csv_clock.hpp"
#include "source/log/csv_rows.hpp"
#include "source/log/labels.hpp"
#include "source/log/messages.hpp"
#include "source/log/owners.hpp"
#include "source/log/recording.hpp"
#include "source/log/unit.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;

using Rows = std::vector<std::vector<std::string_view>>;

constexpr std::size_t kHeaderLines = 50;  ///< lines within which the header must come
constexpr std::size_t kSurveyRows = 4000;

/// The data rows of a head, cut into `count` fields each. Other lines are ignored.
Rows head_rows(std::string_view head, char delimiter, std::size_t count) {
  Rows rows;
  std::vector<std::string_view> fields;
  while (!head.empty() && rows.size() < kSurveyRows) {
    const std::string_view line = take_record(head, delimiter);
    if (trim(line).empty() || line.front() == '#' || looks_like_header(line, delimiter)) continue;
    if (delimiter == '|' && is_drawn(line)) continue;
    split_row(line, delimiter, count, fields);
    if (fields.size() == count) rows.push_back(fields);
  }
  return rows;
}

/// Status lines among the rows may have as many fields by chance. The kind of a row is the set of its fields that begin
/// with a digit: keeps only rows of the most frequent kind, if it makes up two thirds of them.
void keep_alike(Rows& rows) {
  const auto kind = [](const std::vector<std::string_view>& row) {
    std::string out;
    for (const std::string_view field : row) out += !field.empty() && logtext::is_digit(field.front()) ? 'n' : 't';
    return out;
  };
  std::map<std::string, std::size_t> kinds;
  for (const auto& row : rows) ++kinds[kind(row)];
  const auto most = logtext::most_frequent(kinds);
  if (most == kinds.end() || most->second * 3 < rows.size() * 2 || most->first.find('n') == std::string::npos) return;
  std::erase_if(rows, [&](const auto& row) {
    const std::string its = kind(row);
    // A missing value counts as a value.
    for (std::size_t i = 0; i < its.size(); ++i)
      if (its[i] != most->first[i] && !logtext::is_missing(row[i])) return true;
    return false;
  });
}

/// "[N/A]" in every row: the card does not report the value, and no other log of this kind will contain it. Returns an
/// explanation; nullopt: some row has a value.
std::optional<std::string> not_reported(const Rows& rows, const ColumnPlan& plan) {
  if (rows.empty() || plan.pid >= 0 || plan.used < 0 || !plan.wide.empty()) return {};
  for (const auto& row : rows)
    if (!logtext::is_missing(cell(row, plan.used)) ||
        (plan.free >= 0 && plan.total >= 0 && !logtext::is_missing(cell(row, plan.free))))
      return {};
  if (trim(cell(rows.front(), plan.used)).empty()) return {};
  const std::string card =
      plan.device_name >= 0 ? fmt::format(" ({})", excerpt(cell(rows.front(), plan.device_name))) : "";
  return fmt::format(
      "this is a log of the right kind, but the used memory is '{}' in all of its {} rows: this card{} does not report "
      "it, because it has no memory of its own or the driver does not count it; record what the processes hold instead "
      "(nvidia-smi --query-compute-apps=timestamp,gpu_uuid,pid,process_name,used_gpu_memory --format=csv -l 1), or the "
      "host's memory, which the card shares",
      cell(rows.front(), plan.used), rows.size(), card);
}

/// Whether every value of a column is a percentage ("10.0%"); false when it has none.
bool all_percent(const Rows& rows, int column) {
  std::size_t percents = 0;
  for (const auto& row : rows) {
    const std::string_view text = cell(row, column);
    if (logtext::is_missing(text)) continue;
    if (!text.ends_with('%')) return false;
    ++percents;
  }
  return percents > 0;
}

/// Decides from the values what the titles leave open about percentages.
void resolve_percent(const Rows& rows, bool comma, ColumnPlan& plan) {
  if (!plan.percent && plan.used >= 0 && all_percent(rows, plan.used)) {
    // Sizes are more informative than a percentage.
    if (plan.free >= 0 && plan.total >= 0 && plan.wide.empty())
      plan.used = -1;
    else
      plan.percent = true;
    plan.used_unit = 0;
  }
  if (!plan.percent || plan.total < 0) return;
  if (!plan.wide.empty()) {
    for (ColumnPlan::Wide& wide : plan.wide) wide.total = -1;
    plan.total = -1;
    return;
  }
  const bool has_total = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
    std::uint64_t bytes = 0;
    return logtext::read_amount(cell(row, plan.total), kBytesPerMiB, bytes, comma) == logtext::Amount::read;
  });
  if (!has_total && !rows.empty()) plan.total = -1;
}

/// "Memory Max" is a capacity if it is constant and never below the used memory; otherwise it is a peak.
bool is_capacity(const Rows& rows, const ColumnPlan& plan, bool comma) {
  std::uint64_t capacity = 0;
  std::uint64_t most_used = 0;
  for (const auto& row : rows) {
    std::uint64_t bytes = 0;
    const std::uint64_t used_unit = plan.used_unit != 0 ? plan.used_unit : 1;
    const std::uint64_t total_unit = plan.total_unit != 0 ? plan.total_unit : used_unit;
    if (logtext::read_amount(cell(row, plan.total), total_unit, bytes, comma) == logtext::Amount::read) {
      if (capacity != 0 && bytes != capacity) return false;
      capacity = bytes;
    }
    if (plan.used >= 0 && logtext::read_amount(cell(row, plan.used), used_unit, bytes, comma) == logtext::Amount::read)
      most_used = std::max(most_used, bytes);
  }
  return capacity > most_used;
}

/// Columns whose titles only name GPUs are accepted if the values can only be memory: in bytes, or with units.
Status check_measure(const Rows& rows, const ColumnPlan& plan, bool comma) {
  constexpr double kBytesFrom = 4e6;  // no temperature, clock, power or percentage is so large
  double most = 0;
  for (const auto& row : rows)
    for (const ColumnPlan::Wide& wide : plan.wide) {
      logtext::Decimal number;
      const std::string_view text = cell(row, wide.used);
      if (!logtext::read_decimal(text, number, comma)) continue;
      std::uint64_t bytes = 0;
      bool has_unit = false;
      if (logtext::read_amount(text, 1, bytes, comma, &has_unit) == logtext::Amount::read && has_unit) return {};
      most = std::max(most, number.value());
    }
  if (most >= kBytesFrom) return {};
  return fail(
      fmt::format("the columns name GPUs but not what is measured, and values up to {0:.6g} may be memory, a "
                  "temperature or "
                  "a utilization; if they are used memory, pass {1} (for example {1} MiB)",
                  most, name_of(Option::unit)));
}

bool has_no_value_twice(const Rows& rows, int column) {
  std::vector<std::string_view> values;
  values.reserve(rows.size());
  for (const auto& row : rows) values.push_back(cell(row, column));
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

}  // namespace

namespace {

/// The columns of a header separated by '|', as in "time|gpu|used_mb". Screens are drawn with '|', too: the header must
/// name used memory and a time, unless three rows follow it, and these must have as many fields. Markdown tables are
/// read as text.
std::optional<ColumnPlan> find_barred_header(std::string_view line, std::string_view rest) {
  constexpr std::size_t kSureRows = 3;
  const auto bars = [](std::string_view text) { return std::count(text.begin(), text.end(), '|'); };
  if (bars(line) == 0 || !looks_like_header(line, '|')) return std::nullopt;
  if (trim(rest).starts_with("|-")) return std::nullopt;
  std::size_t rows = 0;
  for (std::string_view row; !rest.empty() && rows < kSureRows; rows += trim(row).empty() || is_drawn(row) ? 0U : 1U) {
    row = logtext::take_line(rest);
    if (trim(row).empty() || is_drawn(row)) continue;
    if (bars(row) != bars(line) || looks_like_header(row, '|')) break;
  }
  auto plan = plan_header(line, '|');
  if (!plan || rows == 0 || (plan->time < 0 && (rows < kSureRows || trim(line).starts_with('|')))) return std::nullopt;
  return std::move(*plan);
}

}  // namespace

namespace {

/// Whether the lines after a header are its rows: two of the next three non-blank lines, or all if there are fewer.
bool has_rows(std::string_view rest, const ColumnPlan& plan) {
  constexpr std::size_t kLooked = 3;
  std::size_t lines = 0;
  std::size_t rows = 0;
  std::vector<std::string_view> fields;
  while (!rest.empty() && lines < kLooked) {
    const std::string_view line = take_record(rest, plan.delimiter);
    if (trim(line).empty()) continue;
    split_row(line, plan.delimiter, plan.count, fields);
    ++lines;
    rows += fields.size() == plan.count ? 1U : 0U;
  }
  return rows * 2 > lines;
}

}  // namespace

std::optional<ColumnPlan> find_header(std::string_view head) {
  // A line of prose may look like a header: among several, the first one with rows below it is taken.
  std::optional<ColumnPlan> first;
  for (std::size_t i = 0; i < kHeaderLines && !head.empty(); ++i) {
    const std::string_view text = head.substr(0, head.find('\n'));
    std::string_view line = take_record(head, find_delimiter(text) == '\0' ? ',' : find_delimiter(text));
    // "# timestamp, memory.used": a commented header.
    while (!line.empty() && (line.front() == '#' || line.front() == ' ')) line.remove_prefix(1);
    const char delimiter = find_delimiter(line);
    const char cut = delimiter == '\0' ? ',' : delimiter;
    if (std::count(line.begin(), line.end(), '|') >= std::count(line.begin(), line.end(), cut))
      if (auto plan = find_barred_header(line, head)) return plan;
    if (line.size() > 65'536 || !looks_like_header(line, cut)) continue;
    // A single word ("memory") is a header only if it ends in a unit in brackets.
    if (delimiter == '\0' && !trim(line).ends_with(']')) continue;
    auto plan = plan_header(line, cut);
    if (!plan) continue;
    if (has_rows(head, *plan)) return std::move(*plan);
    const bool is_of_free = plan->used < 0 && plan->total < 0;  // which sentences also mention
    if (!first && !is_of_free) first = std::move(*plan);
  }
  return first;
}

bool is_all_rows(std::string_view head, const ColumnPlan& plan) {
  constexpr std::size_t kLooked = 300;
  const std::string_view first = logtext::take_line(head);
  if (plan.time < 0 || logtext::trim(first) != plan.header) return false;
  std::vector<std::string_view> fields;
  std::size_t lines = 0;
  std::size_t rows = 0;
  for (; lines < kLooked && !head.empty(); ++lines) {
    split_row(logtext::take_line(head), plan.delimiter, plan.count, fields);
    rows += fields.size() == plan.count ? 1U : 0U;
  }
  return rows > 0 && rows * 10 >= lines * 9;
}

namespace {

/// Whether all fields of a line are words: "mem_0_clk" is, a row of values has a number, a time or an id.
bool are_titles(std::string_view line, char delimiter) {
  std::vector<std::string_view> fields;
  split_fields(line, delimiter, fields);
  return std::all_of(fields.begin(), fields.end(), [](std::string_view field) {
    const auto is_of_name = [](char c) { return logtext::is_ascii_letter(c) || logtext::is_digit(c) || c == '_'; };
    return std::none_of(field.begin(), field.end(), logtext::is_digit) ||
           (logtext::is_ascii_letter(field.front()) && std::all_of(field.begin(), field.end(), is_of_name));
  });
}

/// What most of the first lines have in common: there may be dates, messages and a truncated line among them.
struct AlikeRows {
  char delimiter = ',';
  Rows rows;
  std::size_t lines = 0;  ///< lines of the head, at least this many
};

AlikeRows alike_rows(std::string_view head) {
  std::string_view rest = head;
  std::map<std::pair<char, std::size_t>, std::size_t> kinds;
  for (std::size_t tried = 0; !rest.empty() && tried < kHeaderLines;) {
    const std::string_view line = logtext::take_line(rest);
    if (trim(line).empty()) continue;
    ++tried;
    const char c = find_delimiter(line);
    const auto n = static_cast<std::size_t>(std::count(line.begin(), line.end(), c));
    if (c != '\0' || logtext::is_digit(line.front())) ++kinds[{c, c == '\0' ? 0 : n}];
  }
  char delimiter = '\0';
  std::size_t width = 0;
  std::size_t most = 0;
  for (const auto& [kind, lines] : kinds)
    if (lines >= most) {
      most = lines;
      delimiter = kind.first;
      width = kind.second;
    }
  AlikeRows out;
  if (delimiter != '\0') out.delimiter = delimiter;
  out.rows = head_rows(head, out.delimiter, width + 1);
  // Where rows are single words too, remove the dates on lines of their own.
  if (width == 0) std::erase_if(out.rows, [](const auto& row) { return !clock_lines(row.front()).empty(); });
  keep_alike(out.rows);
  while (!head.empty() && out.lines <= kSurveyRows) out.lines += trim(logtext::take_line(head)).empty() ? 0U : 1U;
  return out;
}

}  // namespace

bool has_titles(std::string_view head) {
  const std::string_view first = logtext::take_line(head);
  ColumnPlan plan;
  plan.delimiter = find_delimiter(first);
  if (plan.delimiter == '\0' || !are_titles(first, plan.delimiter)) return false;
  plan.count = static_cast<std::size_t>(std::count(first.begin(), first.end(), plan.delimiter)) + 1;
  return has_rows(head, plan);
}

bool has_column_of_amounts(std::string_view head) {
  const Rows rows = alike_rows(head).rows;
  const auto is_amount = [](std::string_view text) {
    std::uint64_t bytes = 0;
    bool has_unit = false;
    return logtext::read_amount(text, 1, bytes, false, &has_unit) == logtext::Amount::read && has_unit;
  };
  for (std::size_t i = 0; !rows.empty() && i < rows.front().size(); ++i)
    if (std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return is_amount(row[i]); })) return true;
  return false;
}

Result<ColumnPlan> infer_from_head(std::string_view head, std::vector<std::string>& assumptions) {
  const AlikeRows alike = alike_rows(head);
  constexpr std::size_t kFewestOf = 8;  // a few lines of prose may look like rows
  if (alike.rows.empty() || alike.rows.size() * kFewestOf < alike.lines)
    return fail("there is no header line and no row of values");
  if (alike.rows.front().size() > kMostColumns)
    return fail(fmt::format("more than {} columns: not a log of memory", kMostColumns));
  return infer_columns(alike.rows, alike.delimiter, !clock_lines(head).empty(), assumptions);
}

namespace {

/// Why a first line of titles is not the header of a memory log; nullopt: it is one, or it has no titles.
std::optional<Error> why_no_header(std::string_view head) {
  const std::string_view first = logtext::take_line(head);
  const char delimiter = find_delimiter(first);
  if (delimiter == '\0' || !are_titles(first, delimiter)) return std::nullopt;
  auto refused = plan_header(first, delimiter);
  return refused ? std::nullopt : std::optional(std::move(refused.error()));
}

/// The columns according to the header, or inferred from the values if there is no header.
Result<ColumnPlan> find_columns(std::string_view head, std::vector<std::string>& assumptions) {
  if (auto header = find_header(head)) return std::move(*header);
  // The first line is a header without the required column: report that rather than infer the columns.
  if (auto why = why_no_header(head)) return fail(std::move(*why));
  return infer_from_head(head, assumptions);
}

/// The number of fields of most lines after the header; 0: there are none.
std::size_t usual_width(std::string_view head, const ColumnPlan& plan) {
  constexpr std::size_t kLooked = 300;
  std::map<std::size_t, std::size_t> widths;
  std::vector<std::string_view> fields;
  bool is_behind = false;
  std::size_t rows = 0;
  while (!head.empty() && rows < kLooked) {
    const std::string_view line = take_record(head, plan.delimiter);
    if (!is_behind || trim(line).empty()) {
      is_behind |= trim(line) == plan.header;
      continue;
    }
    split_row(line, plan.delimiter, plan.count, fields);
    ++widths[fields.size()];
    ++rows;
  }
  const auto most = logtext::most_frequent(widths);
  return most != widths.end() && most->second * 10 >= rows * 9 ? most->first : 0;
}

/// Whether the values of the columns to read agree with their titles.
bool values_fit(const Rows& rows, const ColumnPlan& plan) {
  const auto is_amount = [](std::string_view text) {
    std::uint64_t bytes = 0;
    return logtext::read_amount(text, 1, bytes, true) != logtext::Amount::bad;
  };
  const auto is_time = [](std::string_view text) {
    Civil civil;
    return read_civil(text, civil) || logtext::number_in(text);
  };
  const auto has_letter = [](std::string_view text) {
    return text.empty() || std::any_of(text.begin(), text.end(), logtext::is_ascii_letter);
  };
  return std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
    for (const int column : {plan.used, plan.free, plan.total})
      if (column >= 0 && !is_amount(cell(row, column))) return false;
    if (plan.index >= 0 && !logtext::whole_number<unsigned>(cell(row, plan.index))) return false;
    if (plan.device_name >= 0 && !has_letter(cell(row, plan.device_name))) return false;
    return plan.time < 0 || is_time(cell(row, plan.time));
  });
}

/// If all rows have the same number of fields more than the header has titles: aligns the titles to the values, if only
/// one alignment fits.
void align_titles(std::string_view head, ColumnPlan& plan, std::vector<std::string>& assumptions) {
  constexpr std::size_t kMostMore = 3;
  if (!plan.has_header || plan.used < 0 || !plan.wide.empty()) return;
  const std::size_t width = usual_width(head, plan);
  if (width <= plan.count || width - plan.count > kMostMore) return;
  const std::vector<std::string_view> titles = titles_of(plan);
  const Rows rows = head_rows(head, plan.delimiter, width);
  std::optional<ColumnPlan> found;
  std::size_t at = 0;
  for (std::size_t gap = 0; gap <= plan.count; ++gap) {
    std::string header;
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t title = i < gap ? i : i - (width - plan.count);
      const bool is_extra = i >= gap && i < gap + (width - plan.count);
      if (i > 0) header += plan.delimiter;
      header += is_extra ? std::string("extra") : '"' + std::string(titles[title]) + '"';
    }
    auto tried = plan_header(header, plan.delimiter);
    if (!tried || tried->count != width || !values_fit(rows, *tried)) continue;
    if (found && (found->used != tried->used || found->total != tried->total || found->index != tried->index)) return;
    if (!found) at = gap;
    found = std::move(*tried);
  }
  if (!found) return;
  assumptions.push_back(fmt::format(
      "the rows have {} fields and the header has {}: field {} is assumed to have no title, since the values fit the "
      "titles then; if that is wrong, correct the header",
      width, plan.count, at + 1));
  found->written_header = plan.header;
  plan = std::move(*found);
}

/// "11283/62841MB" in all rows: the used column contains the total, too.
void detect_pairs(const Rows& rows, ColumnPlan& plan) {
  if (rows.empty() || plan.used < 0 || plan.total >= 0 || plan.percent || !plan.wide.empty()) return;
  plan.pair = std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
    std::uint64_t used = 0;
    std::uint64_t total = 0;
    return read_amount_pair(cell(row, plan.used), plan.used_unit != 0 ? plan.used_unit : kBytesPerMiB, used, total) &&
           used <= total;
  });
}

/// MB or GB of the title that are 10^6 or 10^9 bytes: see decimal_unit().
void detect_decimal_unit(const Rows& rows, ColumnPlan& plan, std::vector<std::string>& assumptions) {
  if (plan.pair || plan.used < 0 || !plan.wide.empty()) return;
  std::vector<double> values;
  for (const auto& row : rows) {
    const std::string_view text = cell(row, plan.used);
    const auto value = logtext::number_in(text);
    if (!value && !logtext::is_missing(text)) return;
    if (value) values.push_back(*value);
  }
  const std::uint64_t unit = decimal_unit(values, plan.used_unit, plan.header, assumptions);
  if (unit == 0) return;
  plan.used_unit = unit;
  if (plan.total_unit != 0) plan.total_unit = unit;
  if (plan.free_unit != 0) plan.free_unit = unit;
}

/// Whether each index occurs at most once at each time.
bool differs_within_times(const Rows& rows, int column, int time) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  return std::all_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return seen.emplace(cell(row, time), cell(row, column)).second; });
}

bool is_constant(const Rows& rows, int column) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return cell(row, column) == cell(rows.front(), column); });
}

/// Of several columns titled as an index, chooses the one that differs within a time, or the one that cycles while the
/// other is constant.
void choose_index(const Rows& rows, ColumnPlan& plan) {
  if (plan.time < 0 || plan.index < 0 || plan.other_indexes.empty()) return;
  const bool differs = differs_within_times(rows, plan.index, plan.time);
  if (differs && !is_constant(rows, plan.index)) return;
  for (const int other : plan.other_indexes) {
    if (!differs_within_times(rows, other, plan.time)) continue;
    if (differs && (is_constant(rows, other) || !behaves_like_index(rows, static_cast<std::size_t>(other), plan.time)))
      continue;
    plan.index = other;
    plan.index_is_unsure = false;
    return;
  }
}

/// The cells of a column; none if `column` is below 0.
std::vector<std::string_view> cells_of(const Rows& rows, int column) {
  std::vector<std::string_view> out;
  for (const auto& row : rows)
    if (column >= 0) out.push_back(cell(row, column));
  return out;
}

/// The times of the rows; empty ones if they have none.
std::vector<std::string_view> times_of(const Rows& rows, const ColumnPlan& plan) {
  return plan.time >= 0 ? cells_of(rows, plan.time) : std::vector<std::string_view>(rows.size());
}

/// The cells of `columns` of each row, joined; columns below 0 have none.
std::vector<std::string> joined(const Rows& rows, std::vector<int> columns) {
  std::erase_if(columns, [](int column) { return column < 0; });
  std::vector<std::string> out(columns.empty() ? 0 : rows.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const int column : columns) (out[i] += cell(rows[i], column)) += '\n';
  return out;
}

/// Whether the index numbers the GPUs, of all rows or of each machine, job or process.
bool is_index(const Rows& rows, const ColumnPlan& plan) {
  std::vector<int> origins = plan.series;
  origins.insert(origins.end(), plan.distinguishing.begin(), plan.distinguishing.end());
  if (plan.partition >= 0) origins.push_back(plan.partition);
  std::vector<int> processes = origins;
  processes.insert(processes.end(), {plan.pid, plan.process_name});
  const RecordOwners owners{joined(rows, origins), joined(rows, processes)};
  return numbers_gpus(cells_of(rows, plan.index), times_of(rows, plan), owners, plan.time >= 0);
}

/// The columns that name the owners of rows beside those of the plan: see find_owner_fields(). If the plan has none,
/// the order of the rows may: count_unnamed_gpus().
void find_owner_columns(const Rows& rows, bool comma, ColumnPlan& plan, std::vector<std::string>& assumptions) {
  if (!plan.has_header || !plan.wide.empty()) return;
  std::vector<int> owners{plan.uuid, plan.pci, plan.index, plan.partition, plan.pid};
  owners.insert(owners.end(), plan.distinguishing.begin(), plan.distinguishing.end());
  if (plan.uuid < 0) owners.insert(owners.end(), plan.series.begin(), plan.series.end());  // see device_of()
  std::erase_if(owners, [](int column) { return column < 0; });
  const std::vector<std::string_view> titles = titles_of(plan);
  std::vector<int> columns;
  std::vector<HeadField> fields;
  for (int column = 0; column < static_cast<int>(titles.size()); ++column) {
    const std::string_view title = titles[static_cast<std::size_t>(column)];
    const ColumnRole role = classify_column(title).role;
    const bool is_taken = column == plan.time || column == plan.date || column == plan.outer_count ||
                          std::find(owners.begin(), owners.end(), column) != owners.end();
    const bool is_program = role == ColumnRole::process_name;
    if (is_taken || (is_program ? plan.pid >= 0 : owners.empty())) continue;
    if (!is_program && !may_name_owner(title, cells_of(rows, column))) continue;
    columns.push_back(column);
    fields.push_back(cells_of(rows, column));
  }
  if (columns.empty()) return;
  HeadRecords records{joined(rows, owners), times_of(rows, plan), {}};
  records.owners.resize(rows.size());
  for (const auto& row : rows)
    records.amounts.push_back(logtext::number_in(cell(row, plan.used >= 0 ? plan.used : plan.free), comma)
                                  .value_or(std::numeric_limits<double>::quiet_NaN()));
  std::vector<std::string> names;
  for (const std::size_t field : find_owner_fields(std::move(records), fields)) {
    plan.distinguishing.push_back(columns[field]);
    names.emplace_back(titles[static_cast<std::size_t>(columns[field])]);
  }
  if (!names.empty()) assumptions.push_back(distinguished_by_fields(names));
}

/// Interprets the index column according to its values.
void resolve_index(const Rows& rows, bool comma, ColumnPlan& plan, std::vector<std::string>& assumptions) {
  choose_index(rows, plan);
  find_owner_columns(rows, comma, plan, assumptions);
  if (plan.index_is_unsure && plan.index >= 0 && !is_index(rows, plan)) {
    assumptions.push_back(fmt::format(
        "column {} does not number GPUs (its values do not count through them): it is not read; if it does, title it "
        "'index'",
        plan.index + 1));
    plan.index = -1;
  }
  if (plan.index >= 0 && number_rows(cells_of(rows, plan.index), times_of(rows, plan))) {
    assumptions.emplace_back("the index column numbers the rows: it is not read as a GPU's index");
    if (plan.time < 0 && !plan.clock_lines) {
      plan.time = plan.index;
      plan.time_title.step = true;
    }
    plan.index = -1;
  }
  if (plan.pid >= 0 && number_programs(cells_of(rows, plan.pid))) {
    if (!is_constant(rows, plan.pid)) plan.series.push_back(plan.pid);
    plan.pid = -1;
  }
  find_owner_columns(rows, comma, plan, assumptions);
  const int id = plan.uuid >= 0 ? plan.uuid : plan.pci >= 0 ? plan.pci : plan.index;
  const std::vector<std::string_view> ids = cells_of(rows, id);
  std::erase_if(plan.series, [&](int column) {
    return number_rows(cells_of(rows, column), times_of(rows, plan)) ||
           (id >= 0 && repeat_ids(cells_of(rows, column), ids));
  });
}

/// How many values a column cycles through in a fixed order; 0: it does not cycle.
std::size_t rounds_of_values(const Rows& rows, std::size_t column) {
  constexpr std::size_t kFewestValues = 3;  // two states may alternate over time
  std::vector<std::string_view> steps;      // without repetitions
  for (const auto& row : rows)
    if (steps.empty() || steps.back() != row[column]) steps.push_back(row[column]);
  const std::size_t n = std::set<std::string_view>(steps.begin(), steps.end()).size();
  if (n < kFewestValues || steps.size() < 2 * n) return 0;
  for (std::size_t i = n; i < steps.size(); ++i)
    if (steps[i] != steps[i - n]) return 0;
  return n;
}

/// Whether the first cells are distinct texts that do not count: "layer_7", "llama-13b", but not "step
/// 7".
bool are_names(const Rows& rows) {
  const auto is_name = [](std::string_view text) {
    std::vector<Word> words;
    cut_words(text, words);
    return !words.empty() && !logtext::is_digit(text.front()) && text.find(':') == std::string_view::npos &&
           !logtext::is_missing(text) && std::none_of(words.begin(), words.end(), [](const Word& word) {
             return word.meaning >= Meaning::step && word.meaning <= Meaning::request;
           });
  };
  return rows.size() > 2 && has_no_value_twice(rows, 0) &&
         std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return is_name(row[0]); });
}

/// ", and 59 of them ran out of memory"; empty if none did.
std::string rows_out_of_memory(const Rows& rows) {
  const auto n = std::count_if(rows.begin(), rows.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](std::string_view text) { return reports_out_of_memory(text); });
  });
  return n == 0 ? std::string() : fmt::format(", and {} of {} ran out of memory", n, rows.size());
}

/// Rows without a time or a count, next to a column of parameters that restarts, belong to a benchmark: the parameters
/// explain growth from row to row. If each row is the maximum of another run, the rows are not a sequence.
Status check_parameters(const Rows& rows, const ColumnPlan& plan) {
  if (!plan.has_header || plan.time >= 0 || plan.clock_lines || plan.pid >= 0) return {};
  const std::vector<std::string_view> titles = titles_of(plan);
  for (std::size_t i = 0; i < plan.count; ++i) {
    const ColumnRole role = classify_column(titles[i]).role;
    const bool names_gpu = plan.index >= 0 || plan.uuid >= 0 || plan.pci >= 0 || !plan.series.empty();
    if (i == 0 && !names_gpu && (role == ColumnRole::other || role == ColumnRole::device_name) && are_names(rows))
      return fail(
          fmt::format("the rows have neither a time nor a count, and column 1 '{}' names another thing in each, from "
                      "'{}' to '{}': they "
                      "are not readings one after another; if they are, add a column 'timestamp' or 'step'",
                      excerpt(titles[0]), excerpt(rows.front()[0]), excerpt(rows.back()[0])));
    const bool are_statistics =
        plan.only_peaks ||
        (plan.used >= 0 && read_title(titles[static_cast<std::size_t>(plan.used)]).has({"avg", "mean", "average"}));
    if (are_statistics && role == ColumnRole::series && rows.size() > 1 &&
        has_no_value_twice(rows, static_cast<int>(i)))
      return fail(fmt::format(
          "the rows have neither a time nor a count, and column {} '{}' differs in each: what each one used at most, "
          "or on average, says nothing about how its memory changed; record the used memory with a time, for example "
          "with nvidia-smi "
          "--query-gpu=timestamp,memory.used,memory.total --format=csv -l 1",
          i + 1, excerpt(titles[i])));
    if (role != ColumnRole::other) continue;
    if (const std::size_t n = rounds_of_values(rows, i); n > 0)
      return fail(fmt::format(
          "the rows have neither a time nor a count, and column {} '{}' goes through the same {} values again and "
          "again: they are measurements with different parameters, not readings one after another{}; if they are, add "
          "a "
          "column 'timestamp' or 'step'",
          i + 1, excerpt(titles[i]), n, rows_out_of_memory(rows)));
  }
  return {};
}

/// Cells that hold a list ("[9000, 3997]") have one amount per GPU.
Status expand_lists(const Rows& rows, ColumnPlan& plan, std::vector<std::string>& assumptions) {
  if (plan.used < 0 || !plan.wide.empty() || rows.empty()) return {};
  std::size_t lists = 0;
  std::size_t most = 0;
  std::string_view example;
  for (const auto& row : rows) {
    const std::size_t n = parts_of_list(cell(row, plan.used)).size();
    lists += n > 0 ? 1 : 0;
    if (n <= most) continue;
    most = n;
    example = cell(row, plan.used);
  }
  if (lists * 2 < rows.size()) return {};
  const std::string record = "record a row for each GPU, with its index or uuid";
  if (plan.index >= 0 || plan.uuid >= 0 || plan.pci >= 0 || plan.pid >= 0 || !plan.series.empty())
    return fail(
        fmt::format("column {} holds lists such as '{}', beside a column that says whose row it is: nothing "
                    "says whose each amount is; {}",
                    plan.used + 1, excerpt(example), record));
  for (std::size_t i = 0; i < most; ++i) {
    ColumnPlan::Wide& wide = plan.wide.emplace_back();
    wide.used = plan.used;
    wide.gpu = wide.part = static_cast<int>(i);
  }
  plan.further.clear();
  if (most > 1)
    assumptions.push_back(fmt::format(
        "column {} holds lists such as '{}', which name no GPU: their amounts are assumed to be those of GPU 0, 1, ... "
        "in that order; if they are not, {}",
        plan.used + 1, excerpt(example), record));
  return {};
}

/// Decides from the values what the titles leave open.
Status resolve_columns(const LogHead& head, const Rows& rows, bool comma, ColumnPlan& plan,
                       std::vector<std::string>& assumptions) {
  if (plan.total_may_be_peak && !is_capacity(rows, plan, comma)) plan.total = -1;
  resolve_percent(rows, comma, plan);
  detect_pairs(rows, plan);
  detect_decimal_unit(rows, plan, assumptions);
  if (plan.unnamed_measure && !plan.wide.empty() && head.options->unit.empty())
    if (Status ok = check_measure(rows, plan, comma); !ok) return ok;
  if (!plan.shared_title.empty())
    assumptions.push_back(
        classify_column(plan.shared_title).mentions_host
            ? fmt::format("the column '{}' is the memory of the host, which is judged like that of a GPU",
                          excerpt(plan.shared_title))
            : fmt::format(
                  "the GPU of column '{}' shares the memory of the machine: the used memory is the RAM that all "
                  "programs together use, and its growth may be that of any of them",
                  excerpt(plan.shared_title)));
  if (plan.of_nobody && plan.pid < 0 && plan.index < 0 && plan.device_name < 0)
    assumptions.push_back(may_be_of_host("title"));
  if (plan.of_process && plan.pid < 0)
    assumptions.emplace_back(
        "used_gpu_memory is what one process holds, not what the GPU holds, and no column has its pid: record it with "
        "nvidia-smi --query-compute-apps=timestamp,gpu_uuid,pid,process_name,used_gpu_memory --format=csv -l 1");
  if (Status ok = choose_clock_column(rows, plan, assumptions); !ok) return ok;
  find_clock_lines(head.text, plan);
  resolve_index(rows, comma, plan, assumptions);
  if (Status ok = check_parameters(rows, plan); !ok) return ok;
  // "date,time" in two columns, unless the time column contains the date.
  if (plan.date >= 0 && !rows.empty()) {
    Civil civil;
    if (!read_civil(cell(rows.front(), plan.time), civil) || civil.has_date) plan.date = -1;
  }
  return {};
}

Result<StampReader> make_stamp_reader(const LogHead& head, const Rows& rows, const ColumnPlan& plan,
                                      std::vector<std::string>& assumptions) {
  std::vector<std::string> texts;
  if (plan.clock_lines) texts = clock_lines(head.text);
  if (plan.time >= 0)
    for (const auto& row : rows) texts.push_back(time_text(row, plan));
  if (plan.time >= 0 && texts.empty()) texts.emplace_back("2000-01-01 00:00:00");
  return StampReader::detect(std::vector<std::string_view>(texts.begin(), texts.end()), plan.time_title, *head.options,
                             *head.zone, assumptions);
}

/// The unit of a used column without one. `strict`: it is MiB.
Result<GuessedUnit> choose_unit(const LogHead& head, const Rows& rows, bool comma, bool strict, const ColumnPlan& plan,
                                std::vector<std::string>& assumptions) {
  if (!head.options->unit.empty()) {
    const auto given = unit_of(*head.options);
    if (!given) return fail(given.error());
    return GuessedUnit{*given};
  }
  const int column = plan.used >= 0 ? plan.used : plan.free;
  if (strict || plan.percent || (plan.used >= 0 ? plan.used_unit : plan.free_unit) != 0)
    return GuessedUnit{kBytesPerMiB};
  std::vector<std::string_view> values;
  for (const auto& row : rows) {
    const auto parts = parts_of_list(cell(row, column));
    values.insert(values.end(), parts.begin(), parts.end());
    if (parts.empty()) values.push_back(cell(row, column));
  }
  std::optional<double> total;
  for (const auto& row : rows)
    if (logtext::Decimal number; plan.total >= 0 && logtext::read_decimal(cell(row, plan.total), number, comma))
      total = std::max(total.value_or(0), number.value());
  return guess_unit(values, comma, head.options->capacity_bytes, total, assumptions);
}

/// If only the free memory is given: see most_free_of(); 0: more is given.
Result<std::uint64_t> most_free_bytes(const LogHead& head, const Rows& rows, bool comma, std::uint64_t unit,
                                      const ColumnPlan& plan, std::vector<std::string>& assumptions) {
  if (plan.used >= 0 || plan.total >= 0) return 0;
  std::uint64_t most = 0;
  for (const auto& row : rows) {
    std::uint64_t bytes = 0;
    if (logtext::read_amount(cell(row, plan.free), plan.free_unit != 0 ? plan.free_unit : unit, bytes, comma) ==
        logtext::Amount::read)
      most = std::max(most, bytes);
  }
  return most_free_of(most, rows.size(), head.options->capacity_bytes, assumptions);
}

/// The first cell that names the host's memory: "ram_used_mib 4000 1772359200000"; empty: none.
std::string_view host_cell(const Rows& rows) {
  std::set<std::string_view> known;
  for (const auto& row : rows)
    for (const std::string_view cell : row)
      if (!cell.empty() && logtext::is_ascii_letter(cell.front()) && known.insert(cell).second &&
          names_host_memory(cell))
        return cell;
  return {};
}

}  // namespace

Result<std::unique_ptr<LogParser>> make_csv_parser(const LogHead& head, bool strict) {
  std::vector<std::string> assumptions;
  auto plan = find_columns(head.text, assumptions);
  if (!plan) return fail(std::move(plan.error()));
  align_titles(head.text, *plan, assumptions);

  const Rows rows = head_rows(head.text, plan->delimiter, plan->count);
  const bool comma = plan->delimiter != ',';
  // Whoever names the format knows what the table holds.
  if (plan->only_host && head.options->format.empty())
    return fail(fmt::format("{}; {} csv judges it like that of a GPU", only_host_memory(plan->shared_title),
                            name_of(Option::input_format)));
  // "ram_used_mib 4000 1772359200000": the name of the metric is in each row.
  if (const std::string_view host = plan->has_header ? std::string_view{} : host_cell(rows); !host.empty())
    return fail(only_host_memory(host));
  if (Status ok = expand_lists(rows, *plan, assumptions); !ok) return fail(std::move(ok.error()));
  if (auto why = not_reported(rows, *plan)) return std::make_unique<RowsWithoutFigures>(std::move(*why));
  if (Status ok = resolve_columns(head, rows, comma, *plan, assumptions); !ok) return fail(std::move(ok.error()));
  auto stamp = make_stamp_reader(head, rows, *plan, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  const auto unit = choose_unit(head, rows, comma, strict, *plan, assumptions);
  if (!unit) return fail(unit.error());
  const auto most_free = most_free_bytes(head, rows, comma, unit->bytes, *plan, assumptions);
  if (!most_free) return fail(most_free.error());
  if (plan->only_peaks) {
    if (Status ok = check_runs(titles_of(*plan)); !ok) return fail(std::move(ok.error()));
    assumptions.emplace_back(kOnlyPeaks);
  }
  for (const std::string& title : plan->passed_over)
    assumptions.push_back(fmt::format(
        "column '{}' also holds used memory and is not read; remove the other columns to read it", excerpt(title)));
  const auto positions = count_unnamed_gpus(rows, head.text, *stamp, comma, *plan, assumptions);
  if (!positions) return fail(positions.error());

  auto parser = std::make_unique<CsvRows>(std::move(*plan), std::move(*stamp), std::move(assumptions));
  parser->set_unit(unit->bytes);
  if (unit->is_unknown) parser->set_unit_unknown();
  parser->set_positions(*positions);
  parser->set_most_free(*most_free);
  return parser;
}

}  // namespace vramtrack

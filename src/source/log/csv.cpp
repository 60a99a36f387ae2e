// Tables: any CSV (comma, semicolon, tab; bars below a header) with a recognisable time and used column, and those of
// nvidia-smi --query-gpu=... and --query-compute-apps=..., in which numbers without a unit are MiB.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "source/log/cells.hpp"
#include "source/log/csv_clock.hpp"
#include "source/log/csv_rows.hpp"
#include "source/log/format.hpp"
#include "source/log/json.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

/// The first line that is more than a date, or that has a delimiter.
std::string_view first_row(std::string_view head) {
  std::string_view line;
  while (!head.empty()) {
    line = logtext::take_line(head);
    if (find_delimiter(line) != '\0' || (!trim(line).empty() && clock_lines(line).empty())) break;
  }
  return line;
}

/// Rows of several types, marked by a code in the first cell, as in MSI Afterburner's logs:
///
///   02, 19-06-2025 15:17:16, GPU usage ,Memory usage
///   03, 19-06-2025 15:17:16, 1 ,MB ,0.000 ,8192.000          the unit of title 1, and the limits of its chart
///   80, 19-06-2025 15:17:17, 5.000 ,950.211
struct TypedRows {
  std::string titles, values;  ///< the type codes of the rows that are read
  std::string header;
};

/// Takes the type code off `row`; empty if it has no code.
std::string_view take_code(std::string_view& row) {
  const std::string_view code = row.substr(0, row.find(','));
  if (row.size() < 3 || code.size() != 2 || !std::all_of(code.begin(), code.end(), logtext::is_digit)) return {};
  row.remove_prefix(3);
  return code;
}

std::optional<TypedRows> find_typed_rows(std::string_view head) {
  TypedRows out;
  std::vector<std::string_view> titles;
  std::vector<std::string_view> cells;
  std::map<std::string_view, std::size_t> rows;
  std::map<std::size_t, std::string_view> units;
  while (!head.empty()) {
    std::string_view row = logtext::take_line(head);
    if (trim(row).empty()) continue;
    const std::string_view code = take_code(row);
    if (code.empty()) return std::nullopt;
    split_fields(row, ',', cells);
    Civil civil;
    if (!read_civil(cells.front(), civil)) return std::nullopt;
    const std::string_view rest = row.substr(std::min(row.find(','), row.size() - 1) + 1);
    if (titles.empty() && looks_like_header(rest, ',')) {
      out.titles = code;
      titles.assign(cells.begin() + 1, cells.end());
    } else if (!titles.empty()) {
      ++rows[code];
      const auto number = cells.size() > 2 ? logtext::whole_number<std::size_t>(cells[1]) : std::nullopt;
      if (number && !cells[2].empty() && !logtext::is_digit(cells[2].front())) units.emplace(*number, cells[2]);
    }
  }
  if (titles.empty() || rows.empty()) return std::nullopt;
  out.values = logtext::most_frequent(rows)->first;
  out.header = "time";
  for (std::size_t i = 0; i < titles.size(); ++i) {
    out.header += ',' + std::string(titles[i]);
    if (const auto unit = units.find(i); unit != units.end()) out.header += " [" + std::string(unit->second) + ']';
  }
  return out;
}

/// The rows of values below one header; all other lines are empty.
std::string without_types(std::string_view lines, const TypedRows& typed) {
  std::string out;
  while (!lines.empty()) {
    const bool ends = lines.find('\n') != std::string_view::npos;
    std::string_view row = logtext::take_line(lines);
    const std::string_view code = take_code(row);
    if (code == typed.titles) out += typed.header;
    if (code == typed.values) out += row;
    if (ends) out += '\n';
  }
  return out;
}

/// How lines are rewritten before they are read; without `lines`, they are not rewritten.
Rewriting find_rewriting(std::string_view head) {
  if (has_thousands(head)) return {without_thousands};
  if (auto typed = find_typed_rows(head))
    return {[typed = std::move(*typed)](std::string_view lines) { return without_types(lines, typed); }};
  const auto header = find_header(head);
  if (!header) return {};
  std::vector<int> columns = dotted_columns(head, *header);
  if (columns.empty()) return {};
  return {[columns = std::move(columns), delimiter = header->delimiter](std::string_view lines) {
            return without_dots(lines, delimiter, columns);
          },
          "the dots of its amounts of memory stand between thousands"};
}

Evidence recognise_csv(std::string_view head) {
  if (const auto header = find_header(head))
    return header->delimiter == '\t' && is_all_rows(head, *header) ? Evidence::named_rows : Evidence::titles;
  std::vector<std::string> ignored;
  if (infer_from_head(head, ignored)) return Evidence::values;
  return find_delimiter(first_row(head)) != '\0' && !is_json(head) ? Evidence::syntax : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make_csv(const LogHead& head) {
  const auto make = [](const LogHead& its) { return make_csv_parser(its, false); };
  Rewriting rewriting = find_rewriting(head.text);
  return rewriting.lines ? make_rewritten(head, std::move(rewriting), make) : make(head);
}

/// A table that nvidia-smi writes.
struct TableLayout {
  bool of_processes = false;               ///< each row describes a process
  std::array<std::string_view, 2> titles;  ///< one of which is in its header
};
constexpr TableLayout kQueryGpu = {false, {"memory.", "memory."}};  // its own titles have a dot
constexpr TableLayout kComputeApps = {true, {"used_gpu_memory", "used_memory"}};

template <const TableLayout& layout>
Evidence recognise_table(std::string_view head) {
  const std::string_view start = head.substr(0, 4096);
  const auto has = [&](std::string_view text) { return start.find(text) != std::string_view::npos; };
  if (const auto plan = find_header(head)) {
    const bool is_titled = std::any_of(layout.titles.begin(), layout.titles.end(), has);
    return is_titled && (plan->pid >= 0) == layout.of_processes ? Evidence::own_names : Evidence::none;
  }
  std::vector<std::string> ignored;
  const auto plan = infer_from_head(head, ignored);
  const bool has_amounts = !layout.of_processes && has(" MiB");
  if (!plan) return has_amounts ? Evidence::syntax : Evidence::none;
  if ((plan->pid >= 0) != layout.of_processes) return Evidence::none;
  if (layout.of_processes || has_amounts) return Evidence::own_rows;
  return plan->uuid >= 0 || plan->pci >= 0 ? Evidence::traces : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make_of_nvidia_smi(const LogHead& head) {
  return make_csv_parser(head, true);
}

}  // namespace

const LogFormatInfo csv_log_format{"csv",
                                   "any table with a time column and a used-memory column, see docs/formats/logs.md",
                                   recognise_csv, make_csv, each_line_is_a_record};

const LogFormatInfo query_gpu_log_format{
    "query-gpu", "nvidia-smi --query-gpu=timestamp,index,uuid,memory.used,memory.total --format=csv -l 1",
    recognise_table<kQueryGpu>, make_of_nvidia_smi, each_line_is_a_record};

const LogFormatInfo compute_apps_log_format{
    "compute-apps",
    "nvidia-smi --query-compute-apps=timestamp,gpu_uuid,pid,process_name,used_gpu_memory --format=csv -l 1",
    recognise_table<kComputeApps>, make_of_nvidia_smi, each_line_is_a_record};

}  // namespace vramtrack

// Any CSV (comma, semicolon, tab; bars below a header) with a recognisable time and used column.
#include <functional>

#include "source/log/csv_clock.hpp"
#include "source/log/csv_rows.hpp"
#include "source/log/thousands.hpp"

namespace vramtrack {
namespace {

/// The first line that is not just a date, or that has a delimiter.
std::string_view first_row(std::string_view head) {
  std::string_view line;
  while (!head.empty()) {
    line = logtext::take_line(head);
    if (find_delimiter(line) != '\0' || (!logtext::trim(line).empty() && clock_lines(line).empty())) break;
  }
  return line;
}

int recognise(std::string_view head) {
  constexpr int kSurerThanText = 55;
  if (const auto header = find_header(head))
    return header->delimiter == '\t' && is_all_rows(head, *header) ? kSurerThanText : 50;
  std::vector<std::string> ignored;
  if (infer_from_head(head, ignored)) return 30;
  // A weak match, so that the user of a table with other columns is told what it lacks.
  return find_delimiter(first_row(head)) != '\0' ? 5 : 0;
}

/// How lines are written without what stands between thousands, and what is said of that; none: nothing does.
struct Ungrouping {
  std::function<std::string(std::string_view)> lines;
  std::string said;
};

/// Rows whose numbers have commas, or dots, between thousands.
class GroupedRows final : public LogParser {
 public:
  GroupedRows(std::unique_ptr<LogParser> rows, Ungrouping grouped)
      : rows_(std::move(rows)), grouped_(std::move(grouped)) {
    assumptions_ = rows_->assumptions();
    if (!grouped_.said.empty()) assumptions_.push_back(grouped_.said);
  }

  std::uint64_t parse(std::string_view lines, std::uint64_t first_line, bool complete, LogRows& rows) override {
    return rows_->parse(grouped_.lines(lines), first_line, complete, rows);
  }
  void finish(LogRows& rows) override { rows_->finish(rows); }
  [[nodiscard]] std::optional<std::string> misfit() const override { return rows_->misfit(); }
  [[nodiscard]] bool clock_is_relative() const override { return rows_->clock_is_relative(); }
  [[nodiscard]] bool clock_wraps() const override { return rows_->clock_wraps(); }
  [[nodiscard]] Scale scale() const override { return rows_->scale(); }
  [[nodiscard]] std::string_view needs_file_order() const override { return rows_->needs_file_order(); }
  [[nodiscard]] bool processes_only() const override { return rows_->processes_only(); }

 private:
  std::unique_ptr<LogParser> rows_;
  Ungrouping grouped_;
};

Ungrouping ungrouping(std::string_view head) {
  if (has_thousands(head)) return {without_thousands, {}};
  const auto header = find_header(head);
  if (!header) return {};
  std::vector<int> columns = dotted_columns(head, *header);
  if (columns.empty()) return {};
  return {[columns = std::move(columns), delimiter = header->delimiter](std::string_view lines) {
            return without_dots(lines, delimiter, columns);
          },
          "the dots of its amounts of memory stand between thousands"};
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  Ungrouping grouped = ungrouping(head.text);
  if (!grouped.lines) return make_csv_parser(head, false);
  const std::string text = grouped.lines(head.text);
  LogHead plain = head;
  plain.text = text;
  auto rows = make_csv_parser(plain, false);
  if (!rows) return fail(std::move(rows.error()));
  return std::make_unique<GroupedRows>(std::move(*rows), std::move(grouped));
}

}  // namespace

extern const LogFormatInfo csv_log_format;
const LogFormatInfo csv_log_format{"csv",
                                   "any table with a time column and a used-memory column, see docs/formats/logs.md",
                                   recognise, make, each_line_is_a_record};

}  // namespace vramtrack

// Any CSV (comma, semicolon, tab; bars below a header) with a recognisable time and used column.
#include "source/log/csv_clock.hpp"
#include "source/log/csv_rows.hpp"

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
  if (find_header(head)) return 50;
  std::vector<std::string> ignored;
  if (infer_from_head(head, ignored)) return 30;
  // A weak match, so that the user of a table with other columns is told what it lacks.
  return find_delimiter(first_row(head)) != '\0' ? 5 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return make_csv_parser(head, false);
}

}  // namespace

extern const LogFormatInfo csv_log_format;
const LogFormatInfo csv_log_format{"csv",
                                   "any table with a time column and a used-memory column, see docs/formats/logs.md",
                                   recognise, make, each_line_is_a_record};

}  // namespace vramtrack

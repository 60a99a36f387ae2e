// dcgmi dmon -e 250,252 -d 1000: one row per GPU and reading, the memory in MB of 2^20 bytes. It prints no time; if
// the user put one before each row (| ts '%F %T'), that is read.
//
//   #Entity   FBTTL        FBUSD
//   ID
//   GPU 0     40960        500
//   GPU-I 0   4864         10          an instance of a MIG GPU
#include <fmt/format.h>

#include <algorithm>

#include "core/units.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/dumps.hpp"

namespace vramtrack {
namespace {

using logtext::take_word;
using logtext::trim;

/// Positions of the values after the entity, by the header; -1: no such column.
struct Columns {
  int used = -1, free = -1, total = -1;
  int util = -1, active = -1, received = -1;
  int count = 0;
};

/// "#Entity  GPUTL  FBUSD", "# Entity ..."; false for any other line.
bool read_header(std::string_view line, Columns& columns) {
  const std::size_t at = line.find('#');
  if (at == std::string_view::npos) return false;
  line.remove_prefix(at + 1);
  if (take_word(line) != "Entity") return false;
  columns = {};
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line), ++columns.count) {
    if (word == "FBUSD") columns.used = columns.count;
    if (word == "FBFRE") columns.free = columns.count;
    if (word == "FBTTL") columns.total = columns.count;
    if (word == "GPUTL") columns.util = columns.count;
    if (word == "GRACT") columns.active = columns.count;
    if (word == "PCIRX") columns.received = columns.count;
  }
  return true;
}

/// Cuts "2026-03-01 10:00:00 GPU-I 0  4864  10" into what is before the entity, the entity and the values.
bool cut_row(std::string_view line, std::string_view& before, LogDevice& entity, std::string_view& values) {
  std::size_t at = line.find("GPU");
  if (at == std::string_view::npos || (at > 0 && !logtext::is_space(line[at - 1]))) return false;
  before = trim(line.substr(0, at));
  std::string_view rest = line.substr(at);
  const std::string_view kind = take_word(rest);
  auto numbered = device_numbered(take_word(rest));
  if (!numbered) return false;
  if (kind == "GPU-I" || kind == "GPU-CI")
    numbered->text = fmt::format("{} {}", kind, *std::exchange(numbered->index, std::nullopt));
  else if (kind != "GPU")
    return false;
  entity = std::move(*numbered);
  values = rest;
  return true;
}

/// The time before a row, or on a line of its own.
std::string_view time_in(std::string_view line) {
  std::string_view before, values;
  LogDevice entity;
  return dated_text(cut_row(line, before, entity, values) ? before : line);
}

class DcgmiDmon final : public DumpParser<LineReader> {
 public:
  DcgmiDmon(DumpClock clock, std::vector<std::string> assumptions, const Columns& columns)
      : DumpParser(std::move(clock), std::move(assumptions)), columns_(columns) {}

 private:
  void read_line(std::string_view text, std::uint64_t /*number*/, bool whole, LogRows& rows) override {
    const std::string_view line = trim(text);
    if (line.empty()) return;
    if (read_header(line, columns_)) return;
    std::string_view before, rest;
    LogDevice entity;
    if (!cut_row(line, before, entity, rest)) {
      readings_.take_time(line, rows);
      return;
    }
    values_.clear();
    for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) values_.push_back(word);
    if (!whole || values_.size() != static_cast<std::size_t>(columns_.count))
      return rows.skip(rows.line, fmt::format("{} values where the header has {}", values_.size(), columns_.count));
    std::optional<Timestamp> time;
    if (!before.empty()) {
      Timestamp read;
      if (!readings_.read_time(dated_text(before), read))
        return rows.skip(rows.line, fmt::format("no readable date and time in '{}'; record with ts '%F %T'",
                                                logtext::excerpt(before)));
      time = read;
    }
    set(time, entity, Field::used, columns_.used, rows);
    set(time, entity, Field::free, columns_.free, rows);
    set(time, entity, Field::total, columns_.total, rows);
    // The units make the values those of the facts' samples: per cent, a ratio, bytes per second.
    if (columns_.active < 0) set(time, entity, Field::busy, columns_.util, rows, 100);
    set(time, entity, Field::busy, columns_.active, rows, static_cast<std::uint64_t>(kBusyWhole));
    set(time, entity, Field::received, columns_.received, rows, 1);
  }

  void set(const std::optional<Timestamp>& time, const LogDevice& entity, Field field, int column, LogRows& rows,
           std::uint64_t unit = kBytesPerMiB) {
    if (column < 0) return;
    const std::string_view text = values_[static_cast<std::size_t>(column)];
    // DCGM's own marks of missing values are just below 2^63.
    if (text.size() < 16) readings_.set_text(time, entity, field, text, unit, rows.line, rows);
  }

  Columns columns_;
  std::vector<std::string_view> values_;
};

bool find_header(std::string_view head, Columns& columns) {
  for (int i = 0; i < 200 && !head.empty(); ++i)
    if (read_header(logtext::take_line(head), columns)) return true;
  return false;
}

int recognise(std::string_view head) {
  Columns columns;
  return find_header(head, columns) ? 92 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  Columns columns;
  if (!find_header(head.text, columns)) return fail("no '#Entity ...' header line of dcgmi dmon in the first lines");
  if (columns.used < 0 && (columns.free < 0 || columns.total < 0))
    return fail(
        "this dcgmi dmon log has no FBUSD column, the used memory; record the fields 250 and 252, for example dcgmi "
        "dmon -e 250,252 -d 1000");
  return make_dump_parser<DcgmiDmon>(head, time_in, columns);
}

}  // namespace

extern const LogFormatInfo dcgmi_dmon_log_format;
const LogFormatInfo dcgmi_dmon_log_format{
    "dcgmi-dmon", "dcgmi dmon -e 250,252 -d 1000 | ts '%F %T' > dcgm.log (ts is in moreutils)", recognise, make};

}  // namespace vramtrack

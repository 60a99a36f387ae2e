// `nvidia-smi dmon` and `pmon -s m[...] [-o D|T|DT]`, which have the same layout: one row per GPU and reading, with the
// memory in the fb column (MB of 2^20 bytes), or one row per process, with "-" for a GPU without processes.
#include <fmt/format.h>

#include <algorithm>

#include "core/units.hpp"
#include "source/log/dumps.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;
using logtext::whole_number;

/// Positions of the words in a row, by the "# gpu ..." line.
struct MonitorColumns {
  int date = -1, time = -1, gpu = -1, fb = -1, pid = -1, type = -1, command = -1;
  int sm = -1, received = -1;
  std::size_t count = 0;
};

bool separates(char c) {
  return c == ' ' || c == '\t' || c == ',' || c == '\r';
}

std::string_view take(std::string_view& rest) {
  while (!rest.empty() && separates(rest.front())) rest.remove_prefix(1);
  std::size_t n = 0;
  while (n < rest.size() && !separates(rest[n])) ++n;
  const std::string_view word = rest.substr(0, n);
  rest.remove_prefix(n);
  return word;
}

/// The stamp of a row: its date and time words, joined.
void join_stamp(const std::vector<std::string_view>& words, const MonitorColumns& c, std::string& out) {
  out.clear();
  if (c.date >= 0) out += words[static_cast<std::size_t>(c.date)];
  if (c.date >= 0 && c.time >= 0) out += ' ';
  if (c.time >= 0) out += words[static_cast<std::size_t>(c.time)];
}

/// Reads a "# gpu   pwr ..." header; false for the units line and anything else.
bool read_header(std::string_view line, MonitorColumns& columns) {
  line = trim(line);
  if (line.empty() || line.front() != '#') return false;
  line.remove_prefix(1);
  MonitorColumns found;
  for (std::string_view word = take(line); !word.empty(); word = take(line)) {
    const int at = static_cast<int>(found.count++);
    const std::string name = logtext::lowered(word);
    // Titles are in small letters, but for those of the time: a heading "# GPU usage of ..." is none.
    if (name != word && name != "date" && name != "time") return false;
    if (name == "gpu" && found.gpu < 0)
      found.gpu = at;
    else if (name == "date")
      found.date = at;
    else if (name == "time")
      found.time = at;
    else if (name == "fb")
      found.fb = at;
    else if (name == "sm")
      found.sm = at;
    else if (name == "rxpci")
      found.received = at;
    else if (name == "pid")
      found.pid = at;
    else if (name == "type")
      found.type = at;
    else if (name == "command" || name == "name")
      found.command = at;
  }
  if (found.gpu < 0) return false;
  // A command takes the rest of its line, so only the last column can be a command.
  if (static_cast<std::size_t>(found.command) + 1 != found.count) found.command = -1;
  columns = found;
  return true;
}

/// Cuts a row into words (separated by spaces, tabs or commas); the command, which comes last, keeps its spaces.
void cut_row(std::string_view line, const MonitorColumns& columns, std::vector<std::string_view>& words) {
  words.clear();
  line = trim(line);
  while (!line.empty()) {
    if (columns.command >= 0 && words.size() == static_cast<std::size_t>(columns.command)) {
      while (!line.empty() && separates(line.front())) line.remove_prefix(1);
      words.push_back(trim(line));
      return;
    }
    const std::string_view word = take(line);
    if (!word.empty()) words.push_back(word);
  }
}

/// The first header line of a head.
bool find_header(std::string_view head, MonitorColumns& columns) {
  for (int i = 0; i < 200 && !head.empty(); ++i)
    if (read_header(logtext::take_line(head), columns)) return true;
  return false;
}

Result<StampReader> find_clock(const LogHead& head, const MonitorColumns& columns,
                               std::vector<std::string>& assumptions) {
  if (columns.date < 0 && columns.time < 0) return StampReader::without_clock(*head.options, assumptions);
  std::vector<std::string> stamps;
  std::vector<std::string_view> words;
  for (std::string_view rest = head.text; !rest.empty() && stamps.size() < 400;) {
    const std::string_view line = trim(logtext::take_line(rest));
    if (line.empty() || line.front() == '#') continue;
    cut_row(line, columns, words);
    if (words.size() <= static_cast<std::size_t>(std::max(columns.date, columns.time))) continue;
    join_stamp(words, columns, stamps.emplace_back());
  }
  if (stamps.empty()) stamps.emplace_back(columns.date >= 0 ? "20000101 00:00:00" : "00:00:00");
  const std::vector<std::string_view> samples(stamps.begin(), stamps.end());
  return StampReader::detect(samples, {}, *head.options, *head.zone, assumptions);
}

class MonitorRows final : public LineParser {
 public:
  /// `of_processes`: the log of pmon.
  MonitorRows(const MonitorColumns& columns, StampReader stamp, bool of_processes, std::vector<std::string> assumptions)
      : LineParser(std::move(stamp)), columns_(columns), of_processes_(of_processes) {
    assumptions_ = std::move(assumptions);
  }

  [[nodiscard]] std::optional<std::string> misfit() const override;
  [[nodiscard]] bool processes_only() const override { return of_processes_; }

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override;
  bool read_round(std::string_view text, std::uint64_t number, LogRows& rows);
  bool begins_round();
  void end_round(LogRows& rows);
  void read_device(std::uint64_t number, LogRows& rows);
  void read_process(std::uint64_t number, LogRows& rows);
  std::size_t device(LogRows& rows);
  [[nodiscard]] std::string_view word(int column) const {
    return column >= 0 && static_cast<std::size_t>(column) < words_.size() ? words_[static_cast<std::size_t>(column)]
                                                                           : std::string_view{};
  }

  MonitorColumns columns_;
  bool of_processes_ = false;
  std::vector<std::string_view> words_;  ///< of the present row
  int gpu_ = -1;                         ///< its GPU
  Timestamp time_{};
  std::uint64_t round_ = 0;
  std::vector<std::uint32_t> round_pids_;
  std::vector<std::size_t> device_of_;  ///< by GPU index
  std::string stamp_text_;
  std::uint64_t fit_ = 0, unfit_ = 0;  ///< lines with the header's columns, and others
  std::string first_unfit_;
  bool started_ = false;
};

/// Whether the row just cut begins a new round, if there is no clock: the GPUs start over, or a process repeats.
bool MonitorRows::begins_round() {
  const int gpu = whole_number<int>(word(columns_.gpu)).value_or(-1);
  const std::uint32_t pid = whole_number<std::uint32_t>(word(columns_.pid)).value_or(0);
  const bool again =
      gpu == gpu_ && (pid == 0 || std::find(round_pids_.begin(), round_pids_.end(), pid) != round_pids_.end());
  const bool begins = !started_ || gpu < gpu_ || again;
  if (begins || gpu != gpu_) round_pids_.clear();
  if (pid != 0) round_pids_.push_back(pid);
  return begins;
}

void MonitorRows::read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) {
  const std::string_view text = trim(line);
  if (text.empty()) return;
  if (text.front() == '#') {
    MonitorColumns columns;
    if (read_header(text, columns) && columns.fb >= 0) columns_ = columns;
    return;
  }
  cut_row(text, columns_, words_);
  // The last word of a truncated line may lack digits. A command may be empty.
  const std::size_t least = columns_.count - (columns_.command >= 0 && whole ? 1 : 0);
  if (words_.size() < least || words_.size() > columns_.count) {
    const std::string why =
        fmt::format("{}: '{}' has {} column{}, and the header has {}", whole ? "not a row" : "truncated last line",
                    excerpt(text), words_.size(), words_.size() == 1 ? "" : "s", columns_.count);
    if (whole && unfit_++ == 0) first_unfit_ = fmt::format("line {}: {}", number, why);
    return rows.skip(number, why);
  }
  const auto gpu = device_numbered(word(columns_.gpu));
  if (!gpu) return rows.skip(number, fmt::format("no GPU index in '{}'", excerpt(text)));
  if (!read_round(text, number, rows)) return;
  started_ = true;
  ++fit_;
  gpu_ = *gpu->index;
  if (of_processes_)
    read_process(number, rows);
  else
    read_device(number, rows);
}

/// Sets the time of the row, and ends the round before it if it begins another; false if it has no readable time.
bool MonitorRows::read_round(std::string_view text, std::uint64_t number, LogRows& rows) {
  const bool counts = stamp_.kind() == StampReader::Kind::none;
  Timestamp time = time_;
  if (!counts) {
    join_stamp(words_, columns_, stamp_text_);
    if (!stamp_.read(stamp_text_, time)) {
      rows.skip(number, fmt::format("no readable time in '{}'", excerpt(text)));
      return false;
    }
  }
  const bool begins = counts ? begins_round() : time != time_;
  if (begins && started_) end_round(rows);
  time_ = counts ? stamp_.at_round(round_) : time;
  if (!counts) rows.row_time(time);
  return true;
}

void MonitorRows::end_round(LogRows& rows) {
  if (of_processes_) rows.end_unseen(LogRows::kEveryDevice, static_cast<double>(round_ + 1), time_);
  ++round_;
}

void MonitorRows::read_device(std::uint64_t number, LogRows& rows) {
  std::uint64_t bytes = 0;
  const logtext::Amount amount = logtext::read_amount(word(columns_.fb), kBytesPerMiB, bytes);
  if (amount == logtext::Amount::bad)
    return rows.skip(number, fmt::format("no readable memory in the fb column: '{}'", excerpt(word(columns_.fb))));
  if (amount != logtext::Amount::read) return;
  const std::size_t gpu = device(rows);
  rows.add(time_, rows.device_series(gpu), bytes);
  if (const auto busy = busy_of_percent(word(columns_.sm)))
    rows.add(time_, rows.further_series(gpu, Metric::device_busy, 0), *busy);
  if (const auto megabytes_per_s = whole_number<std::uint32_t>(word(columns_.received)))
    rows.add(time_, rows.further_series(gpu, Metric::device_received, 0), 1'000'000ULL * *megabytes_per_s);
}

void MonitorRows::read_process(std::uint64_t number, LogRows& rows) {
  const std::size_t gpu = device(rows);
  if (word(columns_.pid) == "-") return;
  const auto pid = whole_number<std::uint32_t>(word(columns_.pid));
  std::uint64_t bytes = 0;
  const logtext::Amount amount = logtext::read_amount(word(columns_.fb), kBytesPerMiB, bytes);
  if (!pid || amount == logtext::Amount::bad)
    return rows.skip(number, fmt::format("no readable pid and fb memory: '{}' and '{}'", excerpt(word(columns_.pid)),
                                         excerpt(word(columns_.fb))));
  const bool has_bytes = amount == logtext::Amount::read;
  const std::size_t process =
      rows.process(gpu, *pid, word(columns_.command), word(columns_.type), {}, word(columns_.command), has_bytes);
  rows.seen(process, static_cast<double>(round_ + 1));
  if (has_bytes) rows.add(time_, rows.process_series(process), bytes);
}

std::optional<std::string> MonitorRows::misfit() const {
  constexpr std::uint64_t kFew = 4;
  if (unfit_ == 0 || (fit_ > 0 && (unfit_ < kFew || unfit_ * 2 < fit_))) return std::nullopt;
  return fmt::format(
      "{} of the lines do not fit their '# gpu ...' header, {} do; {}; restore the header that belongs to them", unfit_,
      fit_, first_unfit_);
}

std::size_t MonitorRows::device(LogRows& rows) {
  const auto at = static_cast<std::size_t>(gpu_);
  if (device_of_.size() <= at) device_of_.resize(at + 1, SIZE_MAX);
  if (device_of_[at] == SIZE_MAX) {
    LogDevice gpu;
    gpu.index = gpu_;
    device_of_[at] = rows.device(gpu);
  }
  return device_of_[at];
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head, std::string_view tool) {
  MonitorColumns columns;
  if (!find_header(head.text, columns))
    return fail(fmt::format("no '# gpu ...' header line of nvidia-smi {} in the first lines", tool));
  if (columns.fb < 0)
    return fail(
        fmt::format("this nvidia-smi {0} log has no fb column, the memory; record it with -s m, for example nvidia-smi "
                    "{0} -s um -o DT",
                    tool));
  std::vector<std::string> assumptions;
  auto clock = find_clock(head, columns, assumptions);
  if (!clock) return fail(std::move(clock.error()));
  return std::make_unique<MonitorRows>(columns, std::move(*clock), tool == "pmon", std::move(assumptions));
}

int recognise_dmon(std::string_view head) {
  MonitorColumns columns;
  return find_header(head, columns) && columns.pid < 0 ? 90 : 0;
}

int recognise_pmon(std::string_view head) {
  MonitorColumns columns;
  return find_header(head, columns) && columns.pid >= 0 ? 91 : 0;
}

}  // namespace

extern const LogFormatInfo dmon_log_format;
const LogFormatInfo dmon_log_format{"dmon", "nvidia-smi dmon -s um -o DT", recognise_dmon,
                                    [](const LogHead& head) { return make(head, "dmon"); }, each_line_is_a_record};
extern const LogFormatInfo pmon_log_format;
const LogFormatInfo pmon_log_format{"pmon", "nvidia-smi pmon -s um -o DT", recognise_pmon,
                                    [](const LogHead& head) { return make(head, "pmon"); }, each_line_is_a_record};

}  // namespace vramtrack

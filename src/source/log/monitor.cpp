// Rows below a '#' header that names their values: `nvidia-smi dmon`, one row per GPU and reading, `pmon`, one per
// process, with "-" for a GPU without processes, and `dcgmi dmon`, with a time if the user put one before each row (|
// ts '%F %T'). Their MB are 2^20 bytes.
//
//   # gpu        pid  type    sm    fb   command               #Entity   FBTTL        FBUSD
//   # Idx          #   C/G     %    MB   name                  ID
//       0       4001     C    10   600   python3               GPU 0     40960        500
//                                                              GPU-I 0   4864         10      (of a MIG GPU)
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/units.hpp"
#include "source/log/dump_readings.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;
using logtext::whole_number;

enum class What : std::uint8_t { other, date, time, gpu, used, free, total, busy, share, received, pid, kind, command };

struct Title {
  std::string_view name;
  What what = What::other;
  std::uint64_t unit = 0;
};

constexpr Title kTitles[] = {{"date", What::date},
                             {"time", What::time},
                             {"gpu", What::gpu},
                             {"fb", What::used, kBytesPerMiB},
                             {"sm", What::busy},
                             {"rxpci", What::received, 1'000'000},
                             {"pid", What::pid},
                             {"type", What::kind},
                             {"command", What::command},
                             {"name", What::command},
                             {"fbusd", What::used, kBytesPerMiB},
                             {"fbfre", What::free, kBytesPerMiB},
                             {"fbttl", What::total, kBytesPerMiB},
                             {"gputl", What::busy},
                             {"gract", What::share, static_cast<std::uint64_t>(kBusyWhole)},
                             {"pcirx", What::received, 1}};

struct Header {
  std::vector<Title> columns;
  bool by_entity = false;  ///< the layout of dcgmi: rows begin with "GPU 0", which the columns do not count

  [[nodiscard]] int at(What what) const {
    const auto it = std::find_if(columns.begin(), columns.end(), [what](const Title& t) { return t.what == what; });
    return it == columns.end() ? -1 : static_cast<int>(it - columns.begin());
  }
  [[nodiscard]] bool has(What what) const { return at(what) >= 0; }
  [[nodiscard]] bool has_memory() const { return has(What::used) || (has(What::free) && has(What::total)); }
  [[nodiscard]] bool has_command() const { return has(What::command); }
};

std::string_view take(std::string_view& rest) {
  constexpr std::string_view kSeparators = " \t,\r";
  rest.remove_prefix(std::min(rest.find_first_not_of(kSeparators), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kSeparators));
  rest.remove_prefix(word.size());
  return word;
}

/// "# gpu pwr ...", "#Entity FBUSD", possibly after a time; nullopt for the line of units and anything else.
std::optional<Header> read_header(std::string_view line) {
  const std::size_t at = line.find('#');
  if (at == std::string_view::npos) return std::nullopt;
  const bool begins = trim(line.substr(0, at)).empty();
  line.remove_prefix(at + 1);
  std::string_view rest = line;
  Header out;
  out.by_entity = take(rest) == "Entity";
  if (!out.by_entity && !begins) return std::nullopt;
  if (!out.by_entity) rest = line;
  for (std::string_view word = take(rest); !word.empty(); word = take(rest)) {
    const std::string name = logtext::lower(word);
    const auto* const known =
        std::find_if(std::begin(kTitles), std::end(kTitles), [&](const Title& t) { return t.name == name; });
    const Title title = known == std::end(kTitles) ? Title{} : *known;
    // nvidia-smi's titles are lower case, except those of the time: "# GPU usage of ..." is a heading, not a header.
    if (!out.by_entity && name != word && title.what != What::date && title.what != What::time) return std::nullopt;
    out.columns.push_back(out.has(title.what) ? Title{} : title);
  }
  if (!out.by_entity && !out.has(What::gpu)) return std::nullopt;
  // A command takes the rest of its line, so only the last column can be a command. The share is the finer value.
  for (std::size_t i = 0; i < out.columns.size(); ++i)
    if ((out.columns[i].what == What::command && i + 1 < out.columns.size()) ||
        (out.columns[i].what == What::busy && out.has(What::share)))
      out.columns[i].what = What::other;
  return out;
}

/// The first header line of a head.
std::optional<Header> find_header(std::string_view head) {
  for (int i = 0; i < 200 && !head.empty(); ++i)
    if (auto header = read_header(logtext::take_line(head))) return header;
  return std::nullopt;
}

struct Row {
  std::string stamp;  ///< the date and time of the row; empty: none
  std::optional<LogDevice> gpu;
  std::vector<std::string_view> values;  ///< by column

  [[nodiscard]] std::string_view at(int column) const {
    return column >= 0 && static_cast<std::size_t>(column) < values.size() ? values[static_cast<std::size_t>(column)]
                                                                           : std::string_view{};
  }
};

/// Splits "2026-03-01 10:00:00 GPU-I 0  4864  10"; returns false if no GPU is named.
bool cut_entity_row(std::string_view line, Row& row) {
  const std::size_t at = line.find("GPU");
  if (at == std::string_view::npos || (at > 0 && !logtext::is_space(line[at - 1]))) return false;
  row.stamp = dated_text(line.substr(0, at));
  line.remove_prefix(at);
  const std::string_view kind = take(line);
  row.gpu = device_numbered(take(line));
  if (!row.gpu || (kind != "GPU" && kind != "GPU-I" && kind != "GPU-CI")) return false;
  if (kind != "GPU") row.gpu->text = fmt::format("{} {}", kind, *std::exchange(row.gpu->index, std::nullopt));
  for (std::string_view word = take(line); !word.empty(); word = take(line)) row.values.push_back(word);
  return true;
}

/// Splits a row into words (separated by spaces, tabs or commas); the command, which comes last, keeps its spaces.
bool cut_row(std::string_view line, const Header& header, Row& row) {
  row.stamp.clear();
  row.values.clear();
  if (header.by_entity) return cut_entity_row(line, row);
  const int command = header.at(What::command);
  line = trim(line);
  for (std::string_view word = take(line); !word.empty(); word = take(line)) {
    if (static_cast<int>(row.values.size()) == command) word = trim({word.data(), word.size() + line.size()});
    row.values.push_back(word);
    if (static_cast<int>(row.values.size()) == command + 1 && command >= 0) break;
  }
  for (const int column : {header.at(What::date), header.at(What::time)})
    if (const std::string_view text = row.at(column); !text.empty())
      row.stamp += (row.stamp.empty() ? "" : " ") + std::string(text);
  row.gpu = device_numbered(row.at(header.at(What::gpu)));
  return true;
}

class MonitorRows final : public DumpLines {
 public:
  MonitorRows(DumpClock clock, std::vector<std::string> assumptions, Header header)
      : DumpLines(std::move(clock), std::move(assumptions)),
        header_(std::move(header)),
        of_processes_(header_.has(What::pid)) {}

  [[nodiscard]] std::optional<std::string> misfit() const override;
  [[nodiscard]] bool processes_only() const override { return of_processes_; }

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override;
  bool read_round(std::string_view text, LogRows& rows);
  bool begins_round();
  void end_round(LogRows& rows);
  void read_process(LogRows& rows);
  void read_device(LogRows& rows);

  Header header_;
  bool of_processes_ = false;
  Row row_;
  int gpu_ = -1;                       ///< GPU of the previous row
  std::vector<std::string> pids_;      ///< on the GPU, in the current round
  std::vector<LogDevice> listed_;      ///< GPUs with their processes listed in the current round
  std::optional<Timestamp> time_;      ///< time of the current round
  std::uint64_t fit_ = 0, unfit_ = 0;  ///< lines with the header's columns, and other lines
  std::string first_unfit_;
};

/// Whether the row just split begins a new round, if there is no clock: the GPUs start again, or a process repeats.
bool MonitorRows::begins_round() {
  const int gpu = *row_.gpu->index;
  const std::string pid(row_.at(header_.at(What::pid)));
  const bool is_listed = pid.empty() || pid == "-" || std::find(pids_.begin(), pids_.end(), pid) != pids_.end();
  const bool begins = gpu < gpu_ || (gpu == gpu_ && is_listed);
  if (begins || gpu != gpu_) pids_.clear();
  pids_.push_back(pid);
  gpu_ = gpu;
  return begins;
}

void MonitorRows::read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) {
  const std::string_view text = trim(line);
  if (text.empty()) return;
  if (auto header = read_header(text)) {
    if (header->has_memory()) header_ = std::move(*header);
    return;
  }
  if (text.front() == '#' && !header_.by_entity) return;
  if (!cut_row(text, header_, row_)) {
    readings_.take(dated_text(text), rows);
    return;
  }
  // The last word of a truncated line may lack digits. A command may be empty.
  const std::size_t count = header_.columns.size();
  const std::size_t least = count - (header_.has(What::command) && whole ? 1 : 0);
  if (row_.values.size() < least || row_.values.size() > count || (header_.by_entity && !whole)) {
    const std::string why =
        fmt::format("{}: '{}' has {} column{}, and the header has {}", whole ? "not a row" : "truncated last line",
                    excerpt(text), row_.values.size(), row_.values.size() == 1 ? "" : "s", count);
    if (whole && unfit_++ == 0) first_unfit_ = fmt::format("line {}: {}", number, why);
    return rows.skip(number, why);
  }
  if (!row_.gpu) return rows.skip(number, fmt::format("no GPU index in '{}'", excerpt(text)));
  if (!read_round(text, rows)) return;
  ++fit_;
  of_processes_ ? read_process(rows) : read_device(rows);
}

/// Sets the time of the row, and ends the previous round if it starts a new one; returns false if no time can be read.
bool MonitorRows::read_round(std::string_view text, LogRows& rows) {
  if (header_.by_entity && (readings_.clock().counts() || row_.stamp.empty())) return true;
  if (readings_.clock().counts()) {
    if (begins_round()) end_round(rows);
    return true;
  }
  Timestamp time;
  if (!readings_.read_time(row_.stamp, time)) {
    rows.skip(rows.line, fmt::format("no readable time in '{}'", excerpt(text)));
    return false;
  }
  if (time_ != time) end_round(rows);
  time_ = time;
  readings_.begin_at(time, rows);
  return true;
}

void MonitorRows::end_round(LogRows& rows) {
  for (const LogDevice& gpu : listed_) readings_.list_is_complete(gpu, rows);
  listed_.clear();
  readings_.end_dump(rows);
}

void MonitorRows::read_device(LogRows& rows) {
  readings_.see(*row_.gpu, rows);
  for (std::size_t i = 0; i < row_.values.size(); ++i) {
    const auto& [name, what, unit] = header_.columns[i];
    const std::string_view text = row_.values[i];
    const std::optional<Field> field = what == What::used       ? std::optional(Field::used)
                                       : what == What::free     ? std::optional(Field::free)
                                       : what == What::total    ? std::optional(Field::total)
                                       : what == What::share    ? std::optional(Field::busy)
                                       : what == What::received ? std::optional(Field::received)
                                                                : std::nullopt;
    constexpr std::size_t kBlankDigits = 16;  // DCGM's own marks for missing values are just below 2^63
    if (what == What::busy) readings_.set_busy(std::nullopt, *row_.gpu, text, rows);
    if (field && text.size() < kBlankDigits)
      readings_.set_text(std::nullopt, *row_.gpu, *field, text, unit, rows.line, rows);
  }
}

void MonitorRows::read_process(LogRows& rows) {
  readings_.see(*row_.gpu, rows);
  listed_.push_back(*row_.gpu);
  const std::string_view pid_text = row_.at(header_.at(What::pid));
  const std::string_view memory = row_.at(header_.at(What::used));
  if (pid_text == "-") return;
  const auto pid = whole_number<std::uint32_t>(pid_text);
  std::uint64_t bytes = 0;
  const logtext::Amount amount = logtext::read_amount(memory, kBytesPerMiB, bytes);
  if (!pid || amount == logtext::Amount::bad)
    return rows.skip(rows.line,
                     fmt::format("no readable pid and fb memory: '{}' and '{}'", excerpt(pid_text), excerpt(memory)));
  DumpedProcess process;
  process.pid = *pid;
  process.name = row_.at(header_.at(What::command));
  process.kind = row_.at(header_.at(What::kind));
  if (amount == logtext::Amount::read) process.bytes = bytes;
  readings_.list_process(*row_.gpu, std::move(process), rows);
}

std::optional<std::string> MonitorRows::misfit() const {
  constexpr std::uint64_t kFew = 4;
  if (unfit_ == 0 || (fit_ > 0 && (unfit_ < kFew || unfit_ * 2 < fit_))) return std::nullopt;
  return fmt::format("{} of the lines do not fit their '#' header, {} do; {}; restore the header that belongs to them",
                     unfit_, fit_, first_unfit_);
}

/// `tool`: the command that records the memory.
Result<std::unique_ptr<LogParser>> make(const LogHead& head, std::string_view tool, std::string_view record) {
  auto header = find_header(head.text);
  if (!header) return fail(fmt::format("no '#' header line of {} in the first lines", tool));
  if (!header->has_memory())
    return fail(fmt::format("this {} log does not have the memory; record it with {}", tool, record));
  DumpTimes times;
  times.find = [its = *header, row = Row()](std::string_view line) mutable -> std::string_view {
    if (read_header(line) || (!its.by_entity && trim(line).starts_with('#'))) return {};
    return cut_row(line, its, row) ? std::string_view(row.stamp) : dated_text(line);
  };
  times.has_period = !header->by_entity;
  if (header->has(What::date) || header->has(What::time))
    times.example = header->has(What::date) ? "20000101 00:00:00" : "00:00:00";
  return make_dump_parser<MonitorRows>(head, times, std::move(*header));
}

Evidence recognise_dmon(std::string_view head) {
  const auto header = find_header(head);
  return header && !header->by_entity && !header->has(What::pid) ? Evidence::own_names : Evidence::none;
}

Evidence recognise_pmon(std::string_view head) {
  const auto header = find_header(head);
  return header && !header->by_entity && header->has(What::pid) ? Evidence::own_names : Evidence::none;
}

Evidence recognise_dcgmi(std::string_view head) {
  const auto header = find_header(head);
  return header && header->by_entity ? Evidence::own_names : Evidence::none;
}

constexpr std::string_view kDmon = "nvidia-smi dmon -s um -o DT";
constexpr std::string_view kPmon = "nvidia-smi pmon -s um -o DT";
constexpr std::string_view kDcgmi = "dcgmi dmon -e 250,252 -d 1000 | ts '%F %T' > dcgm.log (ts is in moreutils)";

}  // namespace

const LogFormatInfo dmon_log_format{
    "dmon", kDmon, recognise_dmon,
    [](const LogHead& head) { return make(head, "nvidia-smi dmon", "-s m, for example nvidia-smi dmon -s um -o DT"); },
    each_line_is_a_record};
const LogFormatInfo pmon_log_format{
    "pmon", kPmon, recognise_pmon,
    [](const LogHead& head) { return make(head, "nvidia-smi pmon", "-s m, for example nvidia-smi pmon -s um -o DT"); },
    each_line_is_a_record};
const LogFormatInfo dcgmi_dmon_log_format{"dcgmi-dmon", kDcgmi, recognise_dcgmi,
                                          [](const LogHead& head) { return make(head, "dcgmi dmon", kDcgmi); }};

}  // namespace vramtrack

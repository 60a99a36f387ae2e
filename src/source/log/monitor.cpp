#include "source/log/monitor.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {

using logtext::excerpt;
using logtext::trim;
using logtext::whole_number;

namespace {

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

}  // namespace

bool read_monitor_header(std::string_view line, MonitorColumns& columns) {
  line = trim(line);
  if (line.empty() || line.front() != '#') return false;
  line.remove_prefix(1);
  MonitorColumns found;
  for (std::string_view word = take(line); !word.empty(); word = take(line)) {
    const int at = static_cast<int>(found.count++);
    const std::string name = logtext::lowered(word);
    if (name == "gpu" && found.gpu < 0)
      found.gpu = at;
    else if (name == "date")
      found.date = at;
    else if (name == "time")
      found.time = at;
    else if (name == "fb")
      found.fb = at;
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

void cut_monitor_row(std::string_view line, const MonitorColumns& columns, std::vector<std::string_view>& words) {
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

bool find_monitor_header(std::string_view head, MonitorColumns& columns) {
  for (int i = 0; i < 200 && !head.empty(); ++i)
    if (read_monitor_header(logtext::take_line(head), columns)) return true;
  return false;
}

Result<MonitorHead> read_monitor_head(const LogHead& head, std::string_view tool) {
  MonitorHead out;
  if (!find_monitor_header(head.text, out.columns))
    return fail(fmt::format("no '# gpu ...' header line of nvidia-smi {} in the first lines", tool));
  if (out.columns.fb < 0)
    return fail(
        fmt::format("this nvidia-smi {} log has no fb column, the memory; record it with -s m, for example "
                    "nvidia-smi {} -s um -o DT",
                    tool, tool));
  std::vector<std::string> stamps;
  if (out.columns.date >= 0 || out.columns.time >= 0) {
    std::string_view rest = head.text;
    std::vector<std::string_view> words;
    while (!rest.empty() && stamps.size() < 400) {
      const std::string_view line = logtext::take_line(rest);
      if (trim(line).empty() || trim(line).front() == '#') continue;
      cut_monitor_row(line, out.columns, words);
      if (words.size() <= static_cast<std::size_t>(std::max(out.columns.date, out.columns.time))) continue;
      std::string stamp;
      join_stamp(words, out.columns, stamp);
      stamps.push_back(std::move(stamp));
    }
    if (stamps.empty()) stamps.emplace_back(out.columns.date >= 0 ? "20000101 00:00:00" : "00:00:00");
    const std::vector<std::string_view> samples(stamps.begin(), stamps.end());
    auto stamp = StampReader::detect(samples, {}, *head.options, *head.zone, out.assumptions);
    if (!stamp) return fail(std::move(stamp.error()));
    out.stamp = std::move(*stamp);
  } else {
    out.stamp = StampReader::without_clock(*head.options, out.assumptions);
  }
  return out;
}

bool MonitorParser::begins_round() {
  const int gpu = whole_number<int>(word(columns_.gpu)).value_or(-1);
  const std::uint32_t pid = whole_number<std::uint32_t>(word(columns_.pid)).value_or(0);
  const bool again =
      gpu == gpu_ && (pid == 0 || std::find(round_pids_.begin(), round_pids_.end(), pid) != round_pids_.end());
  const bool begins = !started_ || gpu < gpu_ || again;
  if (begins || gpu != gpu_) round_pids_.clear();
  if (pid != 0) round_pids_.push_back(pid);
  return begins;
}

void MonitorParser::read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) {
  const std::string_view text = trim(line);
  if (text.empty()) return;
  if (text.front() == '#') {
    MonitorColumns columns;
    if (read_monitor_header(text, columns) && columns.fb >= 0) columns_ = columns;
    return;
  }
  cut_monitor_row(text, columns_, words_);
  // The last word of a truncated line may lack digits. A command may be empty.
  const std::size_t least = columns_.count - (columns_.command >= 0 && whole ? 1 : 0);
  if (words_.size() < least || words_.size() > columns_.count) {
    const std::string why =
        fmt::format("{}: '{}' has {} column{}, and the header has {}", whole ? "not a row" : "truncated last line",
                    excerpt(text), words_.size(), words_.size() == 1 ? "" : "s", columns_.count);
    if (whole && unfit_++ == 0) first_unfit_ = fmt::format("line {}: {}", number, why);
    return rows.skip(number, why);
  }
  const auto gpu = whole_number<int>(word(columns_.gpu));
  if (!gpu || *gpu < 0 || *gpu > 4095) return rows.skip(number, fmt::format("no GPU index in '{}'", excerpt(text)));
  if (stamp_.kind() == StampReader::Kind::none) {
    if (begins_round()) {
      if (started_) {
        end_round(rows);
        ++round_;
      }
      time_ = stamp_.at_round(round_);
    }
  } else {
    join_stamp(words_, columns_, stamp_text_);
    Timestamp time;
    if (!stamp_.read(stamp_text_, time))
      return rows.skip(number, fmt::format("no readable time in '{}'", excerpt(text)));
    if (started_ && time != time_) {
      end_round(rows);
      ++round_;
    }
    time_ = time;
    rows.row_time(time);
  }
  started_ = true;
  ++fit_;
  gpu_ = *gpu;
  read_row(number, rows);
}

std::optional<std::string> MonitorParser::misfit() const {
  constexpr std::uint64_t kFew = 4;
  if (unfit_ == 0 || (fit_ > 0 && (unfit_ < kFew || unfit_ * 2 < fit_))) return std::nullopt;
  return fmt::format(
      "{} of the lines do not fit their '# gpu ...' header, {} do; {}; restore the header that belongs to them", unfit_,
      fit_, first_unfit_);
}

std::size_t MonitorParser::device(LogRows& rows) {
  const auto at = static_cast<std::size_t>(gpu_);
  if (device_of_.size() <= at) device_of_.resize(at + 1, SIZE_MAX);
  if (device_of_[at] == SIZE_MAX) {
    LogDevice gpu;
    gpu.index = gpu_;
    device_of_[at] = rows.device(gpu);
  }
  return device_of_[at];
}

}  // namespace vramtrack

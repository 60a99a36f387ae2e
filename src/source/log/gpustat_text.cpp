// gpustat's own text, dumped in a loop or by -i:
//
//   host  Sat Jun 23 20:36:39 2018  390.48
//   [0] GeForce GTX 1070 | 63'C,  10 %,   39 / 151 W |   552 /  8116 MB | ann:mpv/12795(132M) root:Xorg/1305(246M)
#include <fmt/format.h>

#include "core/units.hpp"
#include "source/log/dumps.hpp"
#include "source/log/line_start.hpp"

namespace vramtrack {
namespace {

using logtext::trim;
using logtext::whole_number;

/// A GPU's line, cut into its parts.
struct GpuLine {
  int index = 0;
  std::string_view name, used, total;
  std::string_view processes;
};

bool read_gpu_line(std::string_view line, GpuLine& out) {
  line = trim(line);
  if (line.empty() || line.front() != '[') return false;
  const std::size_t close = line.find(']');
  if (close == std::string_view::npos) return false;
  const auto index = whole_number<int>(line.substr(1, close - 1));
  if (!index || *index < 0 || *index > 4095) return false;
  out.index = *index;
  // Cells: name, temperature and load, memory, processes.
  std::string_view rest = line.substr(close + 1);
  const std::size_t first = rest.find('|');
  if (first == std::string_view::npos) return false;
  out.name = trim(rest.substr(0, first));
  const std::size_t second = rest.find('|', first + 1);
  if (second == std::string_view::npos) return false;
  rest.remove_prefix(second + 1);
  const std::size_t third = rest.find('|');
  std::string_view memory = trim(rest.substr(0, third));
  if (!memory.ends_with("MB") && !memory.ends_with("MiB")) return false;
  memory.remove_suffix(memory.ends_with("MiB") ? 3 : 2);
  const std::size_t slash = memory.find('/');
  if (slash == std::string_view::npos) return false;
  out.used = trim(memory.substr(0, slash));
  out.total = trim(memory.substr(slash + 1));
  out.processes = third == std::string_view::npos ? std::string_view{} : trim(rest.substr(third + 1));
  return true;
}

/// One entry of "ann:python/4242(8123M) bob/17(5M)".
struct Listed {
  std::string_view user, command;
  std::optional<std::uint32_t> pid;
  std::optional<std::uint64_t> bytes;
};

/// Takes the next process off `rest`; false when there is none. A command may have spaces.
bool take_process(std::string_view& rest, Listed& out) {
  for (std::size_t open = rest.find('('); open != std::string_view::npos; open = rest.find('(', open + 1)) {
    const std::size_t close = rest.find("M)", open);
    if (close == std::string_view::npos) return false;
    const std::string_view amount = rest.substr(open + 1, close - open - 1);
    const auto mib = whole_number<std::uint32_t>(amount);
    if (!mib && amount != "?") continue;
    std::string_view who = trim(rest.substr(0, open));
    out = Listed{};
    if (mib) out.bytes = *mib * kBytesPerMiB;
    if (const std::size_t slash = who.rfind('/'); slash != std::string_view::npos) {
      out.pid = whole_number<std::uint32_t>(who.substr(slash + 1));
      if (out.pid) who = who.substr(0, slash);
    }
    const std::size_t colon = who.find(':');
    out.user = who.substr(0, colon);
    if (colon != std::string_view::npos) out.command = who.substr(colon + 1);
    rest.remove_prefix(close + 2);
    return true;
  }
  return false;
}

/// Finds the time of a screen among the lines of other programs.
class Heads {
 public:
  /// The next line, which is of no GPU.
  void take(std::string_view line) {
    if (trim(line).empty()) return;
    last_ = line;
    in_screen_ = false;
  }
  /// The next line is of a GPU: the time in the line before it, once a screen. gpustat's own head is there.
  std::string_view begin() {
    if (in_screen_) return {};
    in_screen_ = true;
    return find_stamp(last_);
  }

 private:
  std::string last_;
  bool in_screen_ = false;
};

class GpustatText final : public LineParser {
 public:
  /// `has_heads`: the line before a screen has its time. If not, any line before it may have it.
  GpustatText(StampReader stamp, bool has_heads, std::vector<std::string> assumptions)
      : LineParser(std::move(stamp)), has_heads_(has_heads) {
    assumptions_ = std::move(assumptions);
  }

 private:
  void take_time(std::string_view text, LogRows& rows) {
    Timestamp time;
    if (stamp_.kind() == StampReader::Kind::none || text.empty() || !stamp_.read(text, time)) return;
    time_ = time;
    stamped_ = true;
    rows.row_time(time);
  }

  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override {
    GpuLine gpu;
    if (!read_gpu_line(line, gpu)) {
      if (trim(line).starts_with("[") && !whole) return rows.skip(number, "truncated last line");
      if (!whole) return;
      if (!has_heads_) return take_time(find_stamp(line), rows);
      return heads_.take(line);
    }
    if (!whole) return rows.skip(number, "truncated last line");
    if (has_heads_) take_time(heads_.begin(), rows);
    if (stamp_.kind() == StampReader::Kind::none) {
      if (last_ >= 0 && gpu.index <= last_) ++round_;
      last_ = gpu.index;
      time_ = stamp_.at_round(round_);
    } else if (!stamped_) {
      return rows.skip(number, "no line with a date before it");
    }
    read_gpu(gpu, number, rows);
  }

  void read_gpu(const GpuLine& gpu, std::uint64_t number, LogRows& rows) {
    std::uint64_t used = 0;
    std::uint64_t total = 0;
    const auto amount = [](std::string_view text, std::uint64_t& bytes) {
      return text == "??" ? logtext::Amount::missing : logtext::read_amount(text, kBytesPerMiB, bytes);
    };
    const logtext::Amount has_used = amount(gpu.used, used);
    const logtext::Amount has_total = amount(gpu.total, total);
    if (has_used == logtext::Amount::bad || has_total == logtext::Amount::bad)
      return rows.skip(number, fmt::format("no readable memory: '{} / {}'", logtext::excerpt(gpu.used),
                                           logtext::excerpt(gpu.total)));
    LogDevice named;
    named.index = gpu.index;
    named.name = gpu.name;
    const std::size_t device = rows.device(named);
    if (has_total == logtext::Amount::read) rows.total(time_, device, total);
    if (has_used == logtext::Amount::read) rows.add(time_, rows.device_series(device), used);
    if (gpu.processes.starts_with("(Not Supported)")) return;
    ++listing_;
    bool all_have_pids = true;
    Listed process;
    std::string_view rest = gpu.processes;
    while (take_process(rest, process)) {
      if (!process.pid) {
        all_have_pids = false;
        continue;
      }
      const std::string_view name = process.command.empty() ? process.user : process.command;
      const std::size_t listed =
          rows.process(device, *process.pid, name, {}, process.user, process.command, process.bytes.has_value());
      rows.seen(listed, static_cast<double>(listing_));
      if (process.bytes) rows.add(time_, rows.process_series(listed), *process.bytes);
    }
    if (!all_have_pids)
      rows.warn("gpustat shows processes without their pids: only the GPUs' use is analysed; record with gpustat -cp");
    else
      rows.end_unseen(device, static_cast<double>(listing_), time_);
  }

  bool has_heads_ = false;
  Heads heads_;
  Timestamp time_{};
  bool stamped_ = false;
  int last_ = -1;
  std::uint64_t round_ = 0;
  std::uint64_t listing_ = 0;
};

int recognise(std::string_view head) {
  GpuLine gpu;
  while (!head.empty())
    if (read_gpu_line(logtext::take_line(head), gpu)) return 91;
  return 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  constexpr std::size_t kMostSamples = 400;
  std::vector<std::string_view> of_heads;
  std::vector<std::string_view> of_any;
  std::string_view rest = head.text;
  std::string_view before;
  while (!rest.empty() && of_heads.size() < kMostSamples) {
    const std::string_view line = logtext::take_line(rest);
    GpuLine gpu;
    if (!read_gpu_line(line, gpu)) {
      if (!trim(line).empty()) before = line;
      if (of_any.size() < kMostSamples)
        if (const std::string_view stamp = find_stamp(line); !stamp.empty()) of_any.push_back(stamp);
      continue;
    }
    if (const std::string_view stamp = find_stamp(before); !stamp.empty()) of_heads.push_back(stamp);
    before = {};
  }
  const bool has_heads = !of_heads.empty();
  const std::vector<std::string_view>& samples = has_heads ? of_heads : of_any;
  std::vector<std::string> assumptions;
  if (samples.empty()) {
    auto stamp = StampReader::of_readings(*head.options, assumptions);
    return std::make_unique<GpustatText>(std::move(stamp), false, std::move(assumptions));
  }
  auto stamp = StampReader::detect(samples, {}, *head.options, *head.zone, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  return std::make_unique<GpustatText>(std::move(*stamp), has_heads, std::move(assumptions));
}

/// A reading begins with the first line that is not a GPU's: the line with its time.
bool begins_record(std::string_view line, std::string_view before) {
  const auto is_of_gpu = [](std::string_view text) { return trim(text).starts_with('['); };
  return !trim(line).empty() && !is_of_gpu(line) && (before.empty() || is_of_gpu(before));
}

}  // namespace

extern const LogFormatInfo gpustat_text_log_format;
const LogFormatInfo gpustat_text_log_format{"gpustat-text", "gpustat -cp -i 1 --no-color > gpustat.log", recognise,
                                            make, begins_record};

}  // namespace vramtrack

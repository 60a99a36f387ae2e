// gpustat's own text, dumped in a loop or by -i:
//
//   host  Sat Jun 23 20:36:39 2018  390.48
//   [0] GeForce GTX 1070 | 63'C,  10 %,   39 / 151 W |   552 /  8116 MB | ann:mpv/12795(132M) root:Xorg/1305(246M)
#include <utility>

#include "core/units.hpp"
#include "source/log/dump_readings.hpp"
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

/// Takes the next process off "ann:python/4242(8123M) bob/17(5M)"; false if there is none. A command may contain
/// spaces. The pid is 0 if absent.
bool take_process(std::string_view& rest, DumpedProcess& out) {
  for (std::size_t open = rest.find('('); open != std::string_view::npos; open = rest.find('(', open + 1)) {
    const std::size_t close = rest.find("M)", open);
    if (close == std::string_view::npos) return false;
    const std::string_view amount = rest.substr(open + 1, close - open - 1);
    const auto mib = whole_number<std::uint32_t>(amount);
    if (!mib && amount != "?") continue;
    std::string_view owner = trim(rest.substr(0, open));
    out = {};
    if (mib) out.bytes = *mib * kBytesPerMiB;
    if (const std::size_t slash = owner.rfind('/'); slash != std::string_view::npos) {
      const auto pid = whole_number<std::uint32_t>(owner.substr(slash + 1));
      out.pid = pid.value_or(0);
      if (pid) owner = owner.substr(0, slash);
    }
    const std::size_t colon = owner.find(':');
    out.user = owner.substr(0, colon);
    out.name = colon == std::string_view::npos ? owner : owner.substr(colon + 1);
    rest.remove_prefix(close + 2);
    return true;
  }
  return false;
}

/// Finds the time of a screen: on the line before it, where gpustat itself prints it. If no screen has one there, any
/// line between two screens may contain it.
class ScreenTimes {
 public:
  explicit ScreenTimes(std::string_view head) {
    while (!head.empty() && !in_heads_) in_heads_ = !in_head_before(logtext::take_line(head)).empty();
    in_screen_ = false;
  }
  /// The time of the line: its own, or that of the previous line if a screen begins here.
  std::string_view of(std::string_view line) {
    if (in_heads_) return in_head_before(line);
    GpuLine ignored;
    return read_gpu_line(line, ignored) ? std::string_view{} : find_stamp(line);
  }

 private:
  std::string_view in_head_before(std::string_view line) {
    GpuLine ignored;
    const bool is_of_gpu = read_gpu_line(line, ignored);
    const bool begins = is_of_gpu && !in_screen_;
    if (is_of_gpu || !trim(line).empty()) in_screen_ = is_of_gpu;
    if (begins) return find_stamp(before_);
    if (!is_of_gpu && !trim(line).empty()) before_ = line;
    return {};
  }

  bool in_heads_ = false;
  bool in_screen_ = false;
  std::string before_;
};

class GpustatText final : public DumpLines {
 public:
  using DumpLines::DumpLines;

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override {
    GpuLine gpu;
    const bool is_of_gpu = read_gpu_line(line, gpu);
    if (!whole) return is_of_gpu || trim(line).starts_with("[") ? rows.skip(number, "truncated last line") : void();
    readings_.take_time(line, rows);
    if (is_of_gpu) read_gpu(gpu, rows);
  }

  void read_gpu(const GpuLine& gpu, LogRows& rows) {
    if (gpu.index <= last_) readings_.end_dump(rows);
    last_ = gpu.index;
    LogDevice named;
    named.index = gpu.index;
    named.name = gpu.name;
    readings_.see(named, rows);
    for (const auto& [field, text] : {std::pair(Field::used, gpu.used), std::pair(Field::total, gpu.total)})
      if (text != "??") readings_.set_text(std::nullopt, named, field, text, kBytesPerMiB, rows.line, rows);
    if (gpu.processes.starts_with("(Not Supported)")) return;
    bool all_have_pids = true;
    DumpedProcess process;
    std::string_view rest = gpu.processes;
    while (take_process(rest, process)) {
      all_have_pids &= process.pid != 0;
      if (process.pid != 0) readings_.list_process(named, process, rows);
    }
    if (!all_have_pids)
      rows.warn("gpustat shows processes without their pids: only the GPUs' use is analysed; record with gpustat -cp");
    else
      readings_.list_is_complete(named, rows);
  }

  int last_ = -1;
};

int recognise(std::string_view head) {
  GpuLine gpu;
  while (!head.empty())
    if (read_gpu_line(logtext::take_line(head), gpu)) return 91;
  return 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return make_dump_parser<GpustatText>(
      head, {[times = ScreenTimes(head.text)](std::string_view line) mutable { return times.of(line); }});
}

/// A reading begins with the first line that is not a GPU's: the line with its time.
bool begins_record(std::string_view line, std::string_view before) {
  const auto is_of_gpu = [](std::string_view text) { return trim(text).starts_with('['); };
  return !trim(line).empty() && !is_of_gpu(line) && (before.empty() || is_of_gpu(before));
}

}  // namespace

const LogFormatInfo gpustat_text_log_format{"gpustat-text", "gpustat -cp -i 1 --no-color > gpustat.log", recognise,
                                            make, begins_record};

}  // namespace vramtrack

// gpustat's own text, printed in a loop or with -i:
//
//   host  Sat Jun 23 20:36:39 2018  390.48
//   [0] GeForce GTX 1070 | 63'C,  10 %,   39 / 151 W |   552 /  8116 MB | ann:mpv/12795(132M) root:Xorg/1305(246M)
#include "core/units.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/line_start.hpp"

namespace vramtrack {
namespace {

using logtext::trim;
using logtext::whole_number;

/// A GPU's line, split into its parts.
struct GpuLine {
  LogDevice gpu;
  std::string_view memory, processes;
};

bool read_gpu_line(std::string_view line, GpuLine& out) {
  // The cells are index and name, temperature and load, memory, and processes.
  line = trim(line);
  const auto cells = bar_cells(line);
  const std::size_t close = line.find(']');
  if (cells.size() < 3 || !line.starts_with('[') || close > cells[0].size() || !cells[2].ends_with('B')) return false;
  const auto gpu = device_numbered(line.substr(1, close - 1));
  if (!gpu || cells[2].find('/') == std::string_view::npos) return false;
  out = {*gpu, cells[2], {}};
  out.gpu.name = trim(cells[0].substr(close + 1));
  // A command may contain bars.
  if (cells.size() > 3) out.processes = line.substr(static_cast<std::size_t>(cells[3].data() - line.data()));
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

/// Finds the time of a screen: on the line before it, where gpustat itself prints it. If no screen has its time there,
/// any line between two screens may contain it.
class ScreenTimes {
 public:
  explicit ScreenTimes(std::string_view head) {
    while (!head.empty() && !in_heads_) in_heads_ = !in_head_before(logtext::take_line(head)).empty();
    in_screen_ = false;
  }
  /// The time of a line: its own, or that of the previous line if a screen begins here.
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
    const LogDevice& named = gpu.gpu;
    if (*named.index <= last_) readings_.end_dump(rows);
    last_ = *named.index;
    if (!readings_.set_pair(std::nullopt, named, gpu.memory, rows))
      rows.skip(rows.line, "no used and total memory in the third cell");
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

Evidence recognise(std::string_view head) {
  GpuLine gpu;
  while (!head.empty())
    if (read_gpu_line(logtext::take_line(head), gpu)) return Evidence::own_names;
  return Evidence::none;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return make_dump_parser<GpustatText>(
      head, {[times = ScreenTimes(head.text)](std::string_view line) mutable { return times.of(line); }});
}

/// A reading begins with the first line that does not describe a GPU: the line with its time.
bool begins_record(std::string_view line, std::string_view before) {
  const auto is_of_gpu = [](std::string_view text) { return trim(text).starts_with('['); };
  return !trim(line).empty() && !is_of_gpu(line) && (before.empty() || is_of_gpu(before));
}

}  // namespace

const LogFormatInfo gpustat_text_log_format{.name = "gpustat-text",
                                            .help = "gpustat -cp -i 1 --no-color > gpustat.log",
                                            .recognise = recognise,
                                            .make = make,
                                            .begins_record = begins_record,
                                            .is_screen = true};

}  // namespace vramtrack

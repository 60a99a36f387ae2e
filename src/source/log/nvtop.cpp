// nvtop: its objects (see gpu_objects.cpp), and its screen. It shows GPUs side by side if the terminal is wide enough
// (github.com/Syllo/nvtop/issues/243):
//
//    Device 0 [NVIDIA A10] PCIe GEN 4@16x RX: 7.812 MiB/s TX: 1.953 MiB/s  Device 1 [NVIDIA A10] PCIe ...
//    GPU 210MHz  MEM 405MHz  TEMP  47°C FAN N/A% POW  15 / 150 W           GPU 400MHz ...
//    GPU[                     0%] MEM[|||||          2.486Gi/22.49Gi]      GPU[   0%] MEM[||||   3.721Gi/22.49Gi]
//    ...
//       PID     USER DEV    TYPE  GPU        GPU MEM    CPU  HOST MEM Command
//      4242      ada   0 Compute  87%   2245MiB  10%    99%   2101MiB python train.py
//
// There is no time in it. Only the processes that fit on the screen are listed, so that one that is missing may live
// on.
#include "source/log/dump_readings.hpp"
#include "source/log/dumps.hpp"
#include "source/log/gpu_objects.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

constexpr std::string_view kDevice = "Device ";
constexpr std::string_view kMemory = "MEM[";

/// "2.486Gi", "2245MiB".
std::optional<std::uint64_t> read_size(std::string_view text) {
  logtext::Decimal number;
  if (!logtext::read_decimal(text, number) || number.negative || number.length == text.size()) return std::nullopt;
  const std::uint64_t unit = written_unit(text.substr(number.length));
  if (unit == 0 || number.whole > (std::uint64_t{1} << 60) / unit) return std::nullopt;
  return static_cast<std::uint64_t>(number.value() * static_cast<double>(unit));
}

class NvtopScreens final : public DumpParser<LineReader> {
 public:
  using DumpParser::DumpParser;

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override {
    rows.line = number;
    if (trim(line).starts_with(kDevice)) {
      in_processes_ = false;
      return read_devices(line);
    }
    if (line.find(kMemory) != std::string_view::npos) return read_memory(line, number, rows);
    if (line.find("PID") != std::string_view::npos && line.find("GPU MEM") != std::string_view::npos) {
      in_processes_ = true;
      return;
    }
    if (in_processes_ && whole && read_process(line, rows)) return;
    readings_.take_time(line, rows);  // anything else is ignored
  }

  void read_devices(std::string_view line) {
    devices_.clear();
    for (std::size_t at = line.find(kDevice); at != std::string_view::npos; at = line.find(kDevice, at + 1)) {
      std::string_view rest = line.substr(at + kDevice.size());
      const auto index = logtext::whole_number<int>(logtext::take_word(rest));
      const std::size_t open = rest.find('[');
      const std::size_t close = rest.find(']');
      if (!index || open == std::string_view::npos || close == std::string_view::npos || close < open) continue;
      LogDevice gpu;
      gpu.index = *index;
      gpu.name = rest.substr(open + 1, close - open - 1);
      devices_.push_back(std::move(gpu));
    }
  }

  void read_memory(std::string_view line, std::uint64_t number, LogRows& rows) {
    std::size_t gpu = 0;
    for (std::size_t at = line.find(kMemory); at != std::string_view::npos; at = line.find(kMemory, at + 1), ++gpu) {
      const std::string_view bar = line.substr(at + kMemory.size());
      std::string_view figures = bar.substr(0, bar.find(']'));
      figures.remove_prefix(std::min(figures.find_first_of("0123456789"), figures.size()));
      const std::size_t slash = figures.find('/');
      const auto used = read_size(figures.substr(0, slash));
      const auto total = slash == std::string_view::npos ? std::nullopt : read_size(figures.substr(slash + 1));
      if (gpu >= devices_.size() || !used || !total || bar.find(']') == std::string_view::npos) {
        rows.skip(number, "no device, or no used and total memory, beside 'MEM['");
        return;
      }
      readings_.set(devices_[gpu], Field::used, *used, rows);
      readings_.set(devices_[gpu], Field::total, *total, rows);
    }
  }

  bool read_process(std::string_view line, LogRows& rows) {
    std::string_view rest = line;
    const auto pid = logtext::whole_number<std::uint32_t>(logtext::take_word(rest));
    logtext::take_word(rest);  // the user
    LogDevice gpu;
    gpu.index = logtext::whole_number<int>(logtext::take_word(rest));
    if (!pid || *pid == 0 || !gpu.index) return false;
    // GPU MEM, then HOST MEM, then the command; between them there are percentages or "N/A".
    std::optional<std::uint64_t> bytes;
    for (int sizes = 0; sizes < 2;) {
      const std::string_view word = logtext::take_word(rest);
      if (word.empty()) return false;
      const auto size = read_size(word);
      if (!size) continue;
      if (sizes++ == 0) bytes = size;
    }
    readings_.list_process(gpu, {*pid, std::string(trim(rest)), {}, {}, {}, bytes}, rows);
    return true;
  }

  std::vector<LogDevice> devices_;  ///< GPUs of the last line of names, in its order
  bool in_processes_ = false;
};

bool has_nvtop_screen(std::string_view head) {
  const std::size_t device = head.find("Device 0 [");
  const std::size_t gpu = device == std::string_view::npos ? device : head.find("GPU[", device);
  return gpu != std::string_view::npos && head.find(kMemory, gpu) != std::string_view::npos;
}

constexpr GpuObjectKeys kObjects = [] {
  GpuObjectKeys keys;
  keys.name = "device_name";
  keys.used = "mem_used";
  keys.total = "mem_total";
  keys.free = "mem_free";
  keys.busy = "gpu_util";
  keys.percent = "mem_util";
  keys.process = "cmdline";
  keys.user = "user";
  keys.process_used = "gpu_mem_bytes_alloc";
  return keys;
}();

bool has_objects(std::string_view head) {
  for (const std::string_view key : {"\"device_name\": ", "\"gpu_clock\": ", "\"mem_util\": "})
    if (head.find(key) == std::string_view::npos) return false;
  return true;
}

int recognise(std::string_view head) {
  return has_objects(head) || has_nvtop_screen(head) ? 93 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  if (!has_objects(head.text) && has_nvtop_screen(head.text)) return make_dump_parser<NvtopScreens>(head, {});
  return make_gpu_objects(head, kObjects);
}

}  // namespace

extern const LogFormatInfo nvtop_log_format;
const LogFormatInfo nvtop_log_format{"nvtop", "while sleep 5; do date; nvtop -s; done", recognise, make};

}  // namespace vramtrack

// nvidia-smi -q in a loop, or with -l; also with -d MEMORY.
//
//   ==============NVSMI LOG==============
//   Timestamp                                 : Sun Mar  1 10:00:00 2026
//   GPU 00000000:01:00.0
//       FB Memory Usage
//           Total                             : 40960 MiB
//           Used                              : 4000 MiB
//       BAR1 Memory Usage                     (a window onto the memory, not memory: not read)
//       Processes
//           Process ID                        : 1234
#include "core/pci_address.hpp"
#include "core/units.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/dumps.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

constexpr std::string_view kBegin = "=NVSMI LOG=";
constexpr std::string_view kMemory = "FB Memory Usage";

/// "00000000:01:00.0" from "GPU 00000000:01:00.0"; empty: not such a header.
std::string pci_of(std::string_view line) {
  constexpr std::string_view kGpu = "GPU ";
  return line.starts_with(kGpu) ? pci_address_of(line.substr(kGpu.size())) : std::string();
}

class SmiQ final : public DumpParser<LineReader> {
 public:
  using DumpParser::DumpParser;

 private:
  void read_line(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) override {
    text = trim(text);
    if (text.find(kBegin) != std::string_view::npos) {
      gpu_.reset();
      return readings_.end_dump(rows);
    }
    if (std::string pci = pci_of(text); !pci.empty()) {
      gpu_.emplace().pci_bus_id = std::move(pci);
      section_.clear();
      return;
    }
    const std::size_t colon = text.find(" : ");
    if (!gpu_) {
      readings_.take_time(text, rows);  // anything else is ignored
      return;
    }
    if (colon == std::string_view::npos) {
      section_ = text;
      if (section_ == "Processes") readings_.list_is_complete(*gpu_, rows);
      return;
    }
    const std::string_view key = trim(text.substr(0, colon));
    const std::string_view value = trim(text.substr(colon + 3));
    if (!whole) return rows.skip(line, "truncated last line");
    if (section_ == kMemory) return read_memory(key, value, line, rows);
    if (section_ == "Utilization" && key == "Gpu") return readings_.set_busy(std::nullopt, *gpu_, value, rows);
    if (section_ == "Processes" || section_ == "Process ID") return read_process(key, value, rows);
    if (key == "Product Name") gpu_->name = value;
    if (key == "GPU UUID") gpu_->uuid = value;
  }

  void read_memory(std::string_view key, std::string_view value, std::uint64_t line, LogRows& rows) {
    const auto set = [&](Field field) {
      readings_.set_text(std::nullopt, *gpu_, field, value, kBytesPerMiB, line, rows);
    };
    // Because of the driver's reserve, used and free memory do not add up to the total.
    if (key == "Total") set(Field::total);
    if (key == "Used") set(Field::used);
  }

  void read_process(std::string_view key, std::string_view value, LogRows& rows) {
    if (key == "Process ID") pid_ = logtext::whole_number<std::uint32_t>(value).value_or(0);
    if (key == "Name") name_ = value;
    if (key != "Used GPU Memory" || pid_ == 0) return;
    std::uint64_t bytes = 0;
    DumpedProcess process{pid_, name_, {}, {}};
    if (logtext::read_amount(value, kBytesPerMiB, bytes) == logtext::Amount::read) process.bytes = bytes;
    readings_.list_process(*gpu_, std::move(process), rows);
    pid_ = 0;
  }

  std::optional<LogDevice> gpu_;  ///< of the header above
  std::string section_;
  std::uint32_t pid_ = 0;
  std::string name_;
};

int recognise(std::string_view head) {
  return head.find(kBegin) != std::string_view::npos ? 94 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  if (head.text.find(kMemory) == std::string_view::npos)
    return fail("this output of nvidia-smi -q does not have the memory; record it with nvidia-smi -q -d MEMORY -l 10");
  return make_dump_parser<SmiQ>(head, {});
}

bool begins_record(std::string_view line, std::string_view /*before*/) {
  return line.find(kBegin) != std::string_view::npos;
}

}  // namespace

extern const LogFormatInfo smi_q_log_format;
const LogFormatInfo smi_q_log_format{"smi-q", "nvidia-smi -q -d MEMORY -l 10 (or nvidia-smi -q in a loop)", recognise,
                                     make, begins_record};

}  // namespace vramtrack

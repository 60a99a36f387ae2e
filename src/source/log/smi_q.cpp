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
#include <array>

#include "core/pci_address.hpp"
#include "core/units.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

constexpr std::string_view kBegin = "=NVSMI LOG=";
constexpr std::string_view kMemory = "FB Memory Usage";

/// "00000000:01:00.0" in "GPU 00000000:01:00.0"; empty if it is not such a header.
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

  std::optional<LogDevice> gpu_;  ///< from the header above
  std::string section_;
  std::uint32_t pid_ = 0;
  std::string name_;
};

Evidence recognise(std::string_view head) {
  return head.find(kBegin) != std::string_view::npos ? Evidence::own_mark : Evidence::none;
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

const LogFormatInfo smi_q_log_format{.name = "smi-q",
                                     .help = "nvidia-smi -q -d MEMORY -l 10 (or nvidia-smi -q in a loop)",
                                     .recognise = recognise,
                                     .make = make,
                                     .begins_record = begins_record,
                                     .is_screen = true};

// nvidia-smi -q -x in a loop, or with -l: XML documents one after another.
//
//   <nvidia_smi_log>
//     <timestamp>Sun Mar  1 10:00:00 2026</timestamp>
//     <gpu id="00000000:01:00.0">
//       <product_name>NVIDIA A100-SXM4-40GB</product_name>
//       <uuid>GPU-6b8f0b3a-...</uuid>
//       <fb_memory_usage> <total>40960 MiB</total> <used>4000 MiB</used> ...
//       <bar1_memory_usage>                       (a window onto the memory, not memory: not read)
//       <processes> <process_info> <pid>1234</pid> <process_name>python</process_name> <used_memory>3900
//       MiB</used_memory>
namespace {

constexpr std::string_view kDocument = "<nvidia_smi_log";
constexpr std::string_view kMemoryTag = "<fb_memory_usage>";
constexpr std::string_view kGpuPath = "nvidia_smi_log/gpu";

/// `text` with the five XML entities replaced by their characters.
std::string plain(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string out;
  while (!text.empty()) {
    char c = text.front();
    std::size_t length = 1;
    for (const auto& [entity, character] : kEntities)
      if (text.starts_with(entity)) {
        c = character;
        length = entity.size();
      }
    out += c;
    text.remove_prefix(length);
  }
  return out;
}

/// The text of a `<timestamp>` on `line`; empty if there is none.
std::string_view timestamp_in(std::string_view line) {
  constexpr std::string_view kTag = "<timestamp>";
  const std::size_t at = line.find(kTag);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + kTag.size());
  const std::size_t end = line.find('<');
  return end == std::string_view::npos ? std::string_view{} : dated_text(line.substr(0, end));
}

class SmiXml final : public DumpParser<LineReader> {
 public:
  /// `path`: the tags that are open where the log begins.
  SmiXml(DumpClock clock, std::vector<std::string> assumptions, std::string_view path)
      : DumpParser(std::move(clock), std::move(assumptions)), path_(path) {}

 private:
  void read_line(std::string_view line, std::uint64_t number, bool /*whole*/, LogRows& rows) override {
    for (std::size_t at = line.find('<'); at != std::string_view::npos; at = line.find('<')) {
      text_ += trim(line.substr(0, at));
      const std::size_t end = line.find('>', at);
      if (end == std::string_view::npos) return;  // the log ends within a tag
      read_tag(line.substr(at + 1, end - at - 1), number, rows);
      line.remove_prefix(end + 1);
    }
    constexpr std::size_t kLongest = 4096;
    if (text_.size() < kLongest) text_ += trim(line);
  }

  void read_tag(std::string_view tag, std::uint64_t line, LogRows& rows) {
    if (tag.starts_with('?') || tag.starts_with('!')) return;
    if (tag.starts_with('/')) {
      close(trim(tag.substr(1)), line, rows);
    } else {
      const std::string_view name = logtext::take_word(tag);
      if (name.ends_with('/') || tag.ends_with('/')) return;  // empty
      open(name, tag, rows);
    }
    text_.clear();
  }

  void open(std::string_view name, std::string_view attributes, LogRows& rows) {
    constexpr std::size_t kDeepest = 1024;  // bytes of the path: nvidia-smi's has less than 100
    if (kDocument.substr(1) == name) {      // the previous document may be truncated
      path_.clear();
      readings_.end_dump(rows);
    }
    if (path_.size() > kDeepest) return;
    path_ += path_.empty() ? "" : "/";
    path_ += name;
    if (path_ == kGpuPath) begin_gpu(attributes);
    if (name == "process_info") process_ = {};
  }

  void begin_gpu(std::string_view attributes) {
    gpu_ = LogDevice{};
    const std::size_t from = attributes.find('"');
    const std::size_t to = from == std::string_view::npos ? from : attributes.find('"', from + 1);
    if (to != std::string_view::npos) gpu_.pci_bus_id = pci_address_of(attributes.substr(from + 1, to - from - 1));
  }

  void close(std::string_view name, std::uint64_t line, LogRows& rows) {
    if (path_ != name && !path_.ends_with("/" + std::string(name))) return;  // end of a tag that was never opened
    if (path_ == "nvidia_smi_log/timestamp") readings_.take(dated_text(text_), rows);
    if (path_ == kDocument.substr(1)) readings_.end_dump(rows);
    if (path_.starts_with(kGpuPath)) read_value(std::string_view(path_).substr(kGpuPath.size()), line, rows);
    path_.resize(path_.size() - name.size());
    if (path_.ends_with('/')) path_.pop_back();
  }

  /// `what`: the path within the GPU. Deeper elements belong to something else, such as a MIG device.
  void read_value(std::string_view what, std::uint64_t line, LogRows& rows) {
    const auto set = [&](Field field) {
      readings_.set_text(std::nullopt, gpu_, field, text_, kBytesPerMiB, line, rows);
    };
    if (what == "/product_name") gpu_.name = plain(text_);
    if (what == "/uuid") gpu_.uuid = text_;
    // Because of the driver's reserve, used and free memory do not add up to the total.
    if (what == "/fb_memory_usage/total") set(Field::total);
    if (what == "/fb_memory_usage/used") set(Field::used);
    if (what == "/utilization/gpu_util") readings_.set_busy(std::nullopt, gpu_, text_, rows);
    if (what == "/processes" && text_ != "N/A") readings_.list_is_complete(gpu_, rows);
    constexpr std::string_view kProcess = "/processes/process_info";
    if (what.starts_with(kProcess)) read_process(what.substr(kProcess.size()), rows);
  }

  void read_process(std::string_view what, LogRows& rows) {
    if (what == "/pid") process_.pid = logtext::whole_number<std::uint32_t>(text_).value_or(0);
    if (what == "/process_name") process_.name = plain(text_);
    std::uint64_t bytes = 0;
    if (what == "/used_memory" && logtext::read_amount(text_, kBytesPerMiB, bytes) == logtext::Amount::read)
      process_.bytes = bytes;
    if (what.empty() && process_.pid != 0) readings_.list_process(gpu_, process_, rows);
  }

  std::string path_;  ///< the open tags: "nvidia_smi_log/gpu/fb_memory_usage"
  std::string text_;  ///< text since the last tag
  LogDevice gpu_;
  DumpedProcess process_;
};

Evidence recognise_xml(std::string_view head) {
  const bool is_own = head.find(kDocument) != std::string_view::npos || head.find(kMemoryTag) != std::string_view::npos;
  return is_own ? Evidence::own_mark : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make_xml(const LogHead& head) {
  if (head.text.find(kMemoryTag) == std::string_view::npos)
    return fail("this output of nvidia-smi -q -x does not have the memory; record it with nvidia-smi -q -x -l 10");
  // A piece without its beginning, as people paste it, describes a GPU.
  const bool is_whole = head.text.find(kDocument) != std::string_view::npos;
  return make_dump_parser<SmiXml>(head, {timestamp_in}, is_whole ? std::string_view{} : kGpuPath);
}

bool begins_document(std::string_view line, std::string_view before) {
  if (line.find("<?xml") != std::string_view::npos) return true;
  return line.find(kDocument) != std::string_view::npos && !before.starts_with("<?xml") && !before.starts_with("<!");
}

}  // namespace

const LogFormatInfo smi_xml_log_format{"smi-xml",       "nvidia-smi -q -x -l 10 (XML documents one after another)",
                                       recognise_xml,   make_xml,
                                       begins_document, false};

}  // namespace vramtrack

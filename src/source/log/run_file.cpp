#include "source/log/run_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/crc32c.hpp"
#include "core/protobuf.hpp"
#include "core/units.hpp"
#include "source/log/json.hpp"
#include "source/log/json_figures.hpp"
#include "source/log/log_file.hpp"
#include "source/log/messages.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostRecordBytes = 16 * kBytesPerMiB;

std::uint64_t little_endian(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

/// Appends the line that identifies the kind of file.
void put_mark(std::string_view kind, std::string& lines) {
  lines += fmt::format("{}\"{}\"}}\n", kRunFileMark, kind);
}

// TensorBoard's event files: TFRecord (tensorflow/core/lib/io/record_writer.h) of Event
// (tensorflow/core/util/event.proto).
//
//   length: uint64 | masked CRC-32C of it | Event | masked CRC-32C of it

/// The single number of a TensorProto (tensorflow/core/framework/tensor.proto); nullopt if it has none or several.
std::optional<double> scalar_of(std::string_view tensor) {
  std::uint64_t type = 0;
  std::optional<double> number;
  std::string_view content;
  int count = 0;
  const auto take = [&](double value) {
    number = value;
    ++count;
  };
  for (ProtoFields field(tensor); field.next();) switch (field.number()) {
      case 1:
        type = field.value();
        break;
      case 4:
        content = field.bytes();
        break;
      case 5:  // float_val, packed or one by one
        if (!field.is_bytes()) take(field.as_float());
        for (std::size_t at = 0; at + 4 <= field.bytes().size(); at += 4)
          take(std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(field.bytes(), at, 4))));
        break;
      case 6:  // double_val
        if (!field.is_bytes()) take(field.as_double());
        for (std::size_t at = 0; at + 8 <= field.bytes().size(); at += 8)
          take(std::bit_cast<double>(little_endian(field.bytes(), at, 8)));
        break;
      default:
        break;
    }
  constexpr std::uint64_t kFloat = 1, kDouble = 2, kInt32 = 3, kInt64 = 9;
  if (type == kFloat && content.size() == 4)
    take(std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(content, 0, 4))));
  if (type == kDouble && content.size() == 8) take(std::bit_cast<double>(little_endian(content, 0, 8)));
  if (type == kInt32 && content.size() == 4) take(static_cast<std::int32_t>(little_endian(content, 0, 4)));
  if (type == kInt64 && content.size() == 8)
    take(static_cast<double>(static_cast<std::int64_t>(little_endian(content, 0, 8))));
  return count == 1 ? number : std::nullopt;
}

class EventFile final : public RunFile {
 public:
  static constexpr std::size_t kHeader = 12;

  /// Length, and its checksum.
  static bool begins_record(std::string_view bytes) {
    if (bytes.size() < kHeader) return false;
    return matches(bytes.substr(0, 8), little_endian(bytes, 8, 4)) && little_endian(bytes, 0, 8) <= kMostRecordBytes;
  }

 private:
  static bool matches(std::string_view bytes, std::uint64_t masked) {
    const std::uint32_t crc = crc32c(bytes);
    return static_cast<std::uint32_t>(((crc >> 15U) | (crc << 17U)) + 0xa282ead8U) == masked;
  }

  std::size_t take(std::string_view bytes, std::string& lines) override {
    if (!marked_) put_mark("tensorboard", lines);
    marked_ = true;
    if (bytes.size() < kHeader) return 0;
    if (!begins_record(bytes)) {
      damaged();
      give_up();
      return bytes.size();
    }
    const auto size = static_cast<std::size_t>(little_endian(bytes, 0, 8));
    if (bytes.size() < kHeader + size + 4) return 0;
    const std::string_view event = bytes.substr(kHeader, size);
    if (matches(event, little_endian(bytes, kHeader + size, 4)))
      read_event(event, lines);
    else
      damaged();
    return kHeader + size + 4;
  }

  static void read_event(std::string_view event, std::string& lines) {
    double wall_time = 0;
    std::uint64_t step = 0;
    std::map<std::string, double> values;
    for (ProtoFields field(event); field.next();) {
      if (field.number() == 1) wall_time = field.as_double();
      if (field.number() == 2) step = field.value();
      if (field.number() == 5)
        for (ProtoFields value(field.bytes()); value.next();)
          if (value.number() == 1) read_value(value.bytes(), values);
    }
    if (values.empty() || !std::isfinite(wall_time)) return;
    values["wall_time"] = wall_time;
    values["step"] = static_cast<double>(step);
    lines += json_line(values);
  }

  static void read_value(std::string_view summary, std::map<std::string, double>& values) {
    std::string_view tag;
    std::optional<double> number;
    for (ProtoFields field(summary); field.next();) {
      if (field.number() == 1) tag = field.bytes();
      if (field.number() == 2 && !field.is_bytes()) number = field.as_float();
      if (field.number() == 8) number = scalar_of(field.bytes());
    }
    if (!tag.empty() && number && std::isfinite(*number)) values[std::string(tag)] = *number;
  }

  bool marked_ = false;
};

bool is_event_file(std::string_view start) {
  return EventFile::begins_record(start);
}

std::unique_ptr<RunFile> open_event_file() {
  return std::make_unique<EventFile>();
}

// W&B's .wandb files: LevelDB's log format (leveldb/doc/log_format.md) with zlib's CRC-32, of Record
// (wandb/proto/wandb_internal.proto).
//
//   ":W&B" | 0xbee1 | version: uint8, then in blocks of 32 KiB:  CRC-32: uint32 | size: uint16 | type: uint8 | data

class WandbFile final : public RunFile {
 public:
  static constexpr std::string_view kMagic{":W&B\xe1\xbe", 6};

 private:
  static constexpr std::size_t kFileHeader = 7, kRecordHeader = 7, kBlock = 32 * 1024;

  std::size_t take(std::string_view bytes, std::string& lines) override {
    const std::size_t taken = take_piece(bytes, lines);
    offset_ += taken;
    return taken;
  }

  std::size_t take_piece(std::string_view bytes, std::string& lines) {
    if (offset_ == 0) {
      if (bytes.size() < kFileHeader) return 0;
      put_mark("wandb", lines);
      return kFileHeader;
    }
    if (skip_ > 0) {
      const std::size_t taken = std::min(skip_, bytes.size());
      skip_ -= taken;
      return taken;
    }
    const std::size_t left = kBlock - static_cast<std::size_t>(offset_ % kBlock);
    if (left < kRecordHeader) return skip_rest(left, bytes, lines);  // padding: no header fits
    if (bytes.size() < kRecordHeader) return 0;
    const auto size = static_cast<std::size_t>(little_endian(bytes, 4, 2));
    const auto type = static_cast<unsigned char>(bytes[6]);
    if (type == 0 && size == 0) return skip_rest(left, bytes, lines);  // preallocated
    if (kRecordHeader + size > left || type < 1 || type > 4) {
      // The next block starts with a new record.
      damaged();
      record_.clear();
      return skip_rest(left, bytes, lines);
    }
    if (bytes.size() < kRecordHeader + size) return 0;
    const std::string_view typed = bytes.substr(6, size + 1);
    if (::crc32(0, reinterpret_cast<const Bytef*>(typed.data()), static_cast<uInt>(typed.size())) !=
        little_endian(bytes, 0, 4)) {
      damaged();
      record_.clear();
      return kRecordHeader + size;
    }
    constexpr unsigned kFull = 1, kFirst = 2, kLast = 4;
    if (type == kFull || type == kFirst) record_.clear();
    if (record_.size() + size <= kMostRecordBytes) record_ += typed.substr(1);
    if (type == kFull || type == kLast) {
      read_record(record_, lines);
      record_.clear();
    }
    return kRecordHeader + size;
  }

  /// Skips the rest of the block, which contains no record.
  std::size_t skip_rest(std::size_t left, std::string_view bytes, std::string& lines) {
    skip_ = left;
    return take_piece(bytes, lines);
  }

  static void read_record(std::string_view record, std::string& lines) {
    for (ProtoFields field(record); field.next();) {
      if (field.number() == 7) read_items(field.bytes(), 3, lines);  // StatsRecord
      if (field.number() == 2) read_items(field.bytes(), 1, lines);  // HistoryRecord
    }
  }

  /// Items of key and JSON value; a StatsRecord has its time in field 2, a HistoryRecord in the item _timestamp.
  static void read_items(std::string_view message, std::uint32_t item_number, std::string& lines) {
    std::map<std::string, double> values;
    for (ProtoFields field(message); field.next();) {
      if (field.number() == item_number) read_item(field.bytes(), values);
      if (field.number() == 2 && item_number == 3) {
        double seconds = 0;
        for (ProtoFields part(field.bytes()); part.next();) {
          if (part.number() == 1) seconds += static_cast<double>(part.value());
          if (part.number() == 2) seconds += static_cast<double>(part.value()) * 1e-9;
        }
        values["_timestamp"] = seconds;
      }
    }
    if (values.size() > 1) lines += json_line(values);
  }

  static void read_item(std::string_view item, std::map<std::string, double>& values) {
    std::string key;
    std::string_view text;
    for (ProtoFields field(item); field.next();) {
      if (field.number() == 1 || field.number() == 2) key += (key.empty() ? "" : ".") + std::string(field.bytes());
      if (field.number() == 16) text = field.bytes();
    }
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!key.empty() && error == std::errc{} && end == text.data() + text.size() && std::isfinite(number))
      values[key] = number;
  }

  std::uint64_t offset_ = 0;
  std::size_t skip_ = 0;  ///< bytes up to the next block
  std::string record_;    ///< pieces of a record that spans blocks
};

bool is_wandb_file(std::string_view start) {
  return start.starts_with(WandbFile::kMagic);
}

int wandb_version(std::string_view start) {
  return start.size() > WandbFile::kMagic.size() ? static_cast<unsigned char>(start[WandbFile::kMagic.size()]) : 0;
}

std::unique_ptr<RunFile> open_wandb_file() {
  return std::make_unique<WandbFile>();
}

}  // namespace

Result<std::unique_ptr<RunFile>> RunFile::recognise(std::string_view start) {
  if (is_event_file(start)) return open_event_file();
  if (!is_wandb_file(start)) return nullptr;
  if (const int version = wandb_version(start); version != 0)
    return fail(fmt::format(
        "a .wandb file of version {}, but only version 0 is supported; export the run's system metrics as CSV",
        version));
  return open_wandb_file();
}

void RunFile::feed(std::string_view bytes, std::string& lines) {
  if (gave_up_) return;
  waiting_ += bytes;
  std::size_t at = 0;
  while (at < waiting_.size() && !gave_up_) {
    const std::size_t taken = take(std::string_view(waiting_).substr(at), lines);
    if (taken == 0) break;
    at += taken;
  }
  waiting_.erase(0, at);
}

void RunFile::end() {
  cut_off_ = !gave_up_ && !waiting_.empty();
}

std::string RunFile::warning() const {
  std::string out;
  if (damaged_ > 0)
    out = fmt::format("{} damaged {}{}", damaged_, damaged_ == 1 ? "record was skipped" : "records were skipped",
                      gave_up_ ? ", and all that follows cannot be read" : "");
  if (cut_off_) out += fmt::format("{}the last record is cut off", out.empty() ? "" : "; ");
  return out;
}

namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;
constexpr std::size_t kMostFiles = 20'000;

constexpr std::string_view kWandbEvents = "wandb-events.jsonl";

/// Whether a file of MLflow's store holds a GPU's used memory: mlruns/0/8d1f3c/metrics/system/gpu_0_memory_usage_...
bool is_mlflow_metric(const fs::path& path) {
  const std::string text = path.string();
  const std::size_t folder = text.rfind("/metrics/");
  if (folder == std::string::npos) return false;
  const auto metric = scalar_metric(text.substr(folder + std::string_view("/metrics/").size()));
  return metric && !metric->is_total && !metric->is_free;
}

/// The file with the amounts for an MLflow metric of percentages; empty if it is not such a metric.
fs::path amounts_beside(const fs::path& metric) {
  constexpr std::string_view kPercentages = "percentage";
  std::string text = metric.string();
  if (!text.ends_with(kPercentages)) return {};
  return text.replace(text.size() - kPercentages.size(), kPercentages.size(), "megabytes");
}

bool is_of_wandb(const fs::path& path) {
  return path.extension() == ".wandb" || path.filename() == kWandbEvents;
}

bool is_recording(const fs::path& path) {
  return is_of_wandb(path) || path.filename().string().find(".tfevents.") != std::string::npos ||
         is_mlflow_metric(path);
}

/// The program's output, or one of the files that Slurm and shells redirect it to; not W&B's own logs and lists.
bool is_log(const fs::path& path) {
  const std::string name = path.filename().string();
  const bool is_of_wandb_itself = name.starts_with("debug") && path.parent_path().filename() == "wandb";
  if (name == "requirements.txt" || is_of_wandb_itself) return false;
  constexpr std::string_view kEndings[] = {".log", ".out", ".err", ".txt"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

/// The paths of W&B's copy of the program's output, derived from that of a recording.
std::array<fs::path, 2> wandb_outputs(const fs::path& recording) {
  const fs::path folder = recording.parent_path();
  return {folder / "files" / "output.log", folder / "output.log"};
}

/// The logs that belong to a recording: W&B's files/output.log, or else those in its folder or the nearest parent
/// folder that has any, up to `root`.
std::vector<std::string> logs_beside(const fs::path& recording, const fs::path& root,
                                     const std::vector<fs::path>& logs) {
  for (const fs::path& path : wandb_outputs(recording))
    if (std::find(logs.begin(), logs.end(), path) != logs.end()) return {path.string()};
  for (fs::path around = recording.parent_path();; around = around.parent_path()) {
    std::vector<std::string> found;
    for (const fs::path& log : logs)
      if (log.parent_path() == around) found.push_back(log.string());
    std::sort(found.begin(), found.end());
    if (!found.empty() || around == root || around == around.parent_path()) return found;
  }
}

/// A recording that is given as a file. Its folder may hold logs of other programs, so a log is read only for W&B's
/// recordings, because its path is known.
RunRecording recording_alone(const std::string& path) {
  RunRecording out{path, {}, {}};
  if (path == "-" || !is_recording(path)) return out;
  std::error_code error;
  if (is_of_wandb(path))
    for (const fs::path& log : wandb_outputs(path))
      if (out.logs.empty() && fs::is_regular_file(log, error)) out.logs.push_back(log.string());
  if (out.logs.empty())
    out.note =
        "no log of the program was read with it, so it is unknown how the run ended; give the folder of the run, with "
        "the log in it";
  return out;
}

}  // namespace

Result<std::vector<RunRecording>> recordings_in(const std::string& path) {
  std::error_code error;
  if (path == "-" || !fs::is_directory(path, error)) return std::vector<RunRecording>{recording_alone(path)};
  std::vector<fs::path> recordings;
  std::vector<fs::path> logs;
  std::size_t seen = 0;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator() && seen < kMostFiles; it.increment(error), ++seen) {
    if (it.depth() >= kDeepest) it.disable_recursion_pending();
    if (!it->is_regular_file(error)) continue;
    if (is_recording(it->path())) recordings.push_back(it->path());
    if (is_log(it->path())) logs.push_back(it->path());
  }
  // The .wandb file of a run also has its system metrics.
  std::erase_if(recordings, [&](const fs::path& one) {
    return one.filename() == kWandbEvents &&
           std::any_of(recordings.begin(), recordings.end(), [&](const fs::path& other) {
             return other.extension() == ".wandb" && other.parent_path() == one.parent_path().parent_path();
           });
  });
  // The amounts are read together with their percentages.
  const std::set<fs::path> all(recordings.begin(), recordings.end());
  std::erase_if(recordings, [&](const fs::path& one) { return all.contains(amounts_beside(one)); });
  if (recordings.empty())
    return fail(fmt::format(
        "{} is a directory in which no run was recorded: it has no .wandb file, no events.out.tfevents... file and no "
        "metrics/system/gpu_0_memory_usage_megabytes of MLflow; give the file of the recording",
        path));
  std::sort(recordings.begin(), recordings.end());
  std::vector<RunRecording> out;
  for (const fs::path& recording : recordings) {
    RunRecording& one = out.emplace_back(RunRecording{recording.string(), logs_beside(recording, path, logs), {}});
    if (one.logs.empty())
      one.note = fmt::format(
          "{} has no log of the program (.log, .out, .err or .txt), so it is unknown how the run ended; put its output "
          "there",
          path);
  }
  return out;
}

namespace {

struct LastMessage {
  std::uint64_t line = 0;
  std::string text;
};

/// The last messages of a log, unless the log continues long after them.
struct LastMessages {
  std::optional<LastMessage> out_of_memory, end;
};

LastMessages last_messages(const std::string& path, LogRows& rows) {
  // The program survived any failure that it reported long before its end.
  constexpr std::uint64_t kLastLines = 200;
  LastMessages out;
  auto lines = LineInput::open(path);
  if (!lines) {
    rows.warn(fmt::format("the log of the run was not read: {}", lines.error().message));
    return out;
  }
  std::uint64_t number = 1;
  for (;;) {
    const auto stretch = (*lines)->next(rows);
    if (!stretch || stretch->text.empty()) break;
    std::string_view text = stretch->text;
    for (; !text.empty(); ++number) {
      const std::string_view line = logtext::take_line(text);
      if (reports_out_of_memory(line)) out.out_of_memory = LastMessage{number, std::string(line)};
      if (reports_end(line)) out.end = LastMessage{number, std::string(line)};
    }
    (*lines)->set_line(number);
  }
  for (std::optional<LastMessage>* const one : {&out.out_of_memory, &out.end})
    if (*one && number - (*one)->line > kLastLines) one->reset();
  return out;
}

}  // namespace

void read_end(const std::vector<std::string>& paths, LogRows& rows) {
  std::vector<LastMessages> found;
  for (const std::string& path : paths) found.push_back(last_messages(path, rows));
  const std::string recording = rows.file();
  const auto report = [&](std::optional<LastMessage> LastMessages::*which, auto add) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::optional<LastMessage>& message = found[i].*which;
      if (!message) continue;
      rows.continue_in(paths[i]);
      rows.line = message->line;
      add(message->text);
      rows.continue_in(recording);
      return true;
    }
    return false;
  };
  if (!report(&LastMessages::out_of_memory, [&](const std::string& text) { rows.out_of_memory(text); }))
    report(&LastMessages::end, [&](const std::string& text) { rows.program_ended(text); });
}

}  // namespace vramtrack

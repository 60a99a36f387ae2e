#include "source/log/run_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "source/log/json_figures.hpp"
#include "source/log/log_file.hpp"
#include "source/log/messages.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;
constexpr std::size_t kMostFiles = 20'000;

/// Whether a file of MLflow's store holds a GPU's used memory: mlruns/0/8d1f3c/metrics/system/gpu_0_memory_usage_...
bool is_mlflow_metric(const fs::path& path) {
  const std::string text = path.string();
  const std::size_t folder = text.rfind("/metrics/");
  if (folder == std::string::npos) return false;
  const auto metric = scalar_metric(text.substr(folder + std::string_view("/metrics/").size()));
  return metric && !metric->is_total && !metric->is_free && !metric->is_percent;
}

bool is_recording(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".wandb") || name == "wandb-events.jsonl" || name.find(".tfevents.") != std::string::npos ||
         is_mlflow_metric(path);
}

bool is_log(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::string_view kEndings[] = {".log", ".out", ".err", ".txt"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

/// The log that belongs to a recording: W&B's files/output.log, or else the only log in its folder or a parent folder
/// up to `root`. Empty: there is none, or several.
std::string log_beside(const fs::path& recording, const fs::path& root, const std::vector<fs::path>& logs) {
  const auto has = [&](const fs::path& path) { return std::find(logs.begin(), logs.end(), path) != logs.end(); };
  const fs::path folder = recording.parent_path();
  for (const fs::path& path : {folder / "files" / "output.log", folder / "output.log"})
    if (has(path)) return path.string();
  for (fs::path around = folder;; around = around.parent_path()) {
    std::vector<fs::path> found;
    for (const fs::path& log : logs)
      if (log.parent_path() == around && log.filename() != "requirements.txt") found.push_back(log);
    if (found.size() == 1) return found.front().string();
    if (!found.empty() || around == root || around == around.parent_path()) return {};
  }
}

}  // namespace

Result<std::vector<RunRecording>> recordings_in(const std::string& path) {
  std::error_code error;
  if (path == "-" || !fs::is_directory(path, error)) return std::vector<RunRecording>{{path, {}}};
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
  // The system metrics of a run are in its .wandb file, too.
  std::erase_if(recordings, [&](const fs::path& one) {
    return one.filename() == "wandb-events.jsonl" &&
           std::any_of(recordings.begin(), recordings.end(), [&](const fs::path& other) {
             return other.extension() == ".wandb" && other.parent_path() == one.parent_path().parent_path();
           });
  });
  if (recordings.empty())
    return fail(fmt::format(
        "{} is a directory in which no run was recorded: it has no .wandb file, no events.out.tfevents... file and no "
        "metrics/system/gpu_0_memory_usage_megabytes of MLflow; give the file of the recording",
        path));
  std::sort(recordings.begin(), recordings.end());
  std::vector<RunRecording> out;
  for (const fs::path& recording : recordings) out.push_back({recording.string(), log_beside(recording, path, logs)});
  return out;
}

void read_end(const std::string& path, LogRows& rows) {
  // The program survived anything that it reported long before its end.
  constexpr std::uint64_t kLastLines = 200;
  auto lines = LineInput::open(path);
  if (!lines) return rows.warn(fmt::format("the log of the run was not read: {}", lines.error().message));
  struct Message {
    std::uint64_t line = 0;
    std::string text;
  };
  std::optional<Message> memory, end;
  std::uint64_t number = 1;
  const std::string recording = rows.file();
  for (;;) {
    const auto stretch = (*lines)->next(rows);
    if (!stretch || stretch->text.empty()) break;
    std::string_view text = stretch->text;
    for (; !text.empty(); ++number) {
      const std::string_view line = logtext::take_line(text);
      if (reports_out_of_memory(line)) memory = Message{number, std::string(line)};
      if (reports_end(line)) end = Message{number, std::string(line)};
    }
    (*lines)->set_line(number);
  }
  rows.continue_in(path);
  const auto is_last = [&](const std::optional<Message>& one) { return one && number - one->line <= kLastLines; };
  if (is_last(memory)) {
    rows.line = memory->line;
    rows.out_of_memory(memory->text);
  } else if (is_last(end)) {
    rows.line = end->line;
    rows.program_ended(end->text);
  }
  rows.continue_in(recording);
}

}  // namespace vramtrack

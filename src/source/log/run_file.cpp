#include "source/log/run_file.hpp"

#include <fmt/format.h>

#include "source/log/run_file_records.hpp"
#include "source/log/scalar_metric.hpp"

namespace vramtrack {

void runfile::put_mark(std::string_view kind, std::string& lines) {
  lines += fmt::format("{}\"{}\"}}\n", kRunFileMark, kind);
}

Result<std::unique_ptr<RunFile>> RunFile::recognise(std::string_view start) {
  if (runfile::is_event_file(start)) return runfile::open_event_file();
  if (!runfile::is_wandb_file(start)) return nullptr;
  if (const int version = runfile::wandb_version(start); version != 0)
    return fail(fmt::format(
        "a .wandb file of version {}, but only version 0 is supported; export the run's system metrics as CSV",
        version));
  return runfile::open_wandb_file();
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

}  // namespace vramtrack

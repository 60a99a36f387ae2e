// Logs of any format of source/log/formats.def: see docs/formats/logs.md.
#include <optional>

#include "recorded/recorded.hpp"

namespace vramtrack {
namespace {

/// Accepts whatever nothing else recognises: the log formats give the best error for a text that is not a log.
int is_anything(const std::string&) {
  return 1;
}

/// A planned recording can be opened once; after that its files are planned again.
class Opener {
 public:
  Opener(Recording recording, LogOptions options)
      : files_(recording.files()),
        recording_(std::make_shared<std::optional<Recording>>(std::move(recording))),
        options_(std::move(options)) {}

  Result<std::unique_ptr<Source>> operator()(Catalog& catalog) const {
    if (!*recording_) {
      auto again = plan_recordings(files_, options_);
      if (!again) return fail(std::move(again.error()));
      recording_->emplace(std::move(again->front()));
    }
    Recording now = std::move(**recording_);
    recording_->reset();
    return open_recording(std::move(now), catalog);
  }

 private:
  std::vector<std::string> files_;
  std::shared_ptr<std::optional<Recording>> recording_;  ///< shared: a std::function must be copyable
  LogOptions options_;
};

Result<std::vector<RecordedPart>> plan_logs(const std::vector<std::string>& paths, const RecordedOptions& options) {
  auto recordings = plan_recordings(paths, options.logs);
  if (!recordings) return fail(std::move(recordings.error()));
  std::vector<RecordedPart> parts;
  for (Recording& recording : *recordings) {
    std::vector<std::string> files = recording.files();
    parts.push_back({std::move(files), Opener(std::move(recording), options.logs), {}});
  }
  return parts;
}

}  // namespace

extern const RecordedInfo log_recorded;
const RecordedInfo log_recorded{"log", is_anything, plan_logs};

}  // namespace vramtrack

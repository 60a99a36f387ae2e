#include "source/log/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "source/log/recognise.hpp"

namespace vramtrack {
namespace {

/// Merges the files of one recording by time, holding no more of each than the stretch being read.
class RecordedSource final : public Source {
 public:
  RecordedSource(std::unique_ptr<DeviceRoster> roster, std::vector<std::unique_ptr<LogFile>> files)
      : roster_(std::move(roster)), files_(std::move(files)) {}

  Result<Progress> poll(Timestamp /*now*/, Batch& out) override {
    // Every file that still may say something earlier must have said it.
    bool all_ended = true;
    Timestamp until = Timestamp::max();
    for (const auto& file : files_) {
      if (file->taken_samples == file->samples.size() && !file->ended())
        if (auto ok = file->fill(); !ok) {
          gather_notes();
          return fail(std::move(ok.error()));
        }
      if (!file->ended()) {
        all_ended = false;
        until = std::min(until, file->settled_until());
      }
    }
    const auto first_sample = static_cast<std::ptrdiff_t>(out.samples.size());
    const auto first_event = static_cast<std::ptrdiff_t>(out.events.size());
    for (const auto& file : files_) {
      const auto samples = file->samples.begin() + static_cast<std::ptrdiff_t>(file->taken_samples);
      // One file alone is in order already; several are cut where the slowest of them stands.
      const auto cut = files_.size() == 1 ? file->samples.end()
                                          : std::upper_bound(samples, file->samples.end(), until,
                                                             [](Timestamp t, const Sample& s) { return t < s.time; });
      out.samples.insert(out.samples.end(), samples, cut);
      file->taken_samples = static_cast<std::size_t>(cut - file->samples.begin());
      while (file->taken_events < file->events.size() &&
             (files_.size() == 1 || file->events[file->taken_events].time <= until))
        out.events.push_back(std::move(file->events[file->taken_events++]));
    }
    if (files_.size() > 1) {
      std::stable_sort(out.samples.begin() + first_sample, out.samples.end(),
                       [](const Sample& a, const Sample& b) { return a.time < b.time; });
      std::stable_sort(out.events.begin() + first_event, out.events.end(),
                       [](const Event& a, const Event& b) { return a.time < b.time; });
    }
    gather_notes();
    return all_ended ? Progress::end : Progress::more;
  }

  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  void gather_notes() {
    std::size_t size = 0;
    for (const auto& file : files_) {
      const SourceNotes& n = file->rows().notes();
      size += n.skipped_lines + n.warnings.size();
    }
    if (size == gathered_) return;
    gathered_ = size;
    notes_ = {};
    for (const auto& file : files_) {
      const SourceNotes& n = file->rows().notes();
      notes_.skipped_lines += n.skipped_lines;
      notes_.first_skipped.insert(notes_.first_skipped.end(), n.first_skipped.begin(), n.first_skipped.end());
      // Of several files, each must be told by name.
      const std::string& name = file->rows().file();
      for (const std::string& warning : n.warnings)
        notes_.warnings.push_back(files_.size() == 1 || warning.starts_with(name) ? warning : name + ": " + warning);
    }
  }

  std::unique_ptr<DeviceRoster> roster_;
  std::vector<std::unique_ptr<LogFile>> files_;
  SourceNotes notes_;
  std::size_t gathered_ = 0;
};

std::string name_of(const LogDevice& device) {
  return device_id(device);
}

/// Which device logs the process log `process` belongs to; an Error when that is not clear.
Result<std::vector<std::size_t>> device_logs_of(const std::vector<std::unique_ptr<PlannedFile>>& files,
                                                std::size_t process) {
  const PlannedFile& p = *files[process];
  std::vector<std::size_t> joined;
  std::size_t undecided = SIZE_MAX;
  const auto join = [&](std::size_t log) {
    if (std::find(joined.begin(), joined.end(), log) == joined.end()) joined.push_back(log);
  };
  for (const LogDevice& device : p.probe.devices) {
    std::size_t found = SIZE_MAX;
    SameDevice how = SameDevice::unknown;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i]->probe.processes_only) continue;
      SameDevice best = SameDevice::no;
      for (const LogDevice& known : files[i]->probe.devices) best = std::max(best, compare(known, device));
      if (best == SameDevice::unknown) undecided = i;
      if (best <= SameDevice::unknown) continue;
      if (found != SIZE_MAX && best == how)
        return fail(
            fmt::format("{} and {} both have GPU {}, so the processes of {} may belong to either; analyse them "
                        "separately, or record uuid in all of them",
                        files[found]->shown, files[i]->shown, name_of(device), p.shown));
      if (found == SIZE_MAX || best > how) {
        found = i;
        how = best;
      }
    }
    if (found != SIZE_MAX) join(found);
  }
  if (joined.empty() && undecided != SIZE_MAX) {
    // No kind of name in common: clear only where there is one GPU on either side.
    const auto device_logs =
        std::count_if(files.begin(), files.end(), [](const auto& f) { return !f->probe.processes_only; });
    if (device_logs == 1 && files[undecided]->probe.devices.size() == 1 && p.probe.devices.size() == 1) {
      join(undecided);
    } else {
      return fail(
          fmt::format("{} and {} name GPUs differently ({} and {}), so their rows cannot be joined; analyse them "
                      "separately, or record uuid (gpu_uuid) in both",
                      files[undecided]->shown, p.shown, name_of(files[undecided]->probe.devices.front()),
                      name_of(p.probe.devices.front())));
    }
  }
  for (const std::size_t log : joined)
    if (files[log]->probe.relative != p.probe.relative)
      return fail(fmt::format(
          "{} and {} name the same GPU, but only one of them has dates; give --start, or analyse them separately",
          files[log]->shown, p.shown));
  return joined;
}

}  // namespace

Recording::Recording() = default;
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;
Recording::~Recording() = default;

Result<std::vector<Recording>> plan_recordings(const std::vector<std::string>& paths, const LogOptions& options) {
  auto zone = Zone::open(options.timezone);
  if (!zone) return fail(std::move(zone.error()));
  if (std::count(paths.begin(), paths.end(), "-") > 1) return fail("standard input ('-') can be read only once");
  std::vector<std::unique_ptr<PlannedFile>> files;
  for (const std::string& path : paths) {
    auto planned = recognise_log(path, options, *zone);
    if (!planned) return fail(std::move(planned.error()));
    files.push_back(std::move(*planned));
  }

  // Groups by union: a process log ties the device logs of its GPUs together.
  std::vector<std::size_t> group(files.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  const auto merge = [&group](std::size_t a, std::size_t b) {
    const std::size_t from = std::max(group[a], group[b]);
    const std::size_t into = std::min(group[a], group[b]);
    std::replace(group.begin(), group.end(), from, into);
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i]->probe.processes_only) continue;
    auto logs = device_logs_of(files, i);
    if (!logs) return fail(std::move(logs.error()));
    for (const std::size_t log : *logs) merge(i, log);
  }

  std::vector<Recording> recordings;
  for (std::size_t g = 0; g < files.size(); ++g) {
    Recording recording;
    for (const bool processes : {false, true})
      for (std::size_t i = 0; i < files.size(); ++i)
        if (group[i] == g && files[i] != nullptr && files[i]->probe.processes_only == processes) {
          recording.files_.push_back(files[i]->path);
          recording.formats_.emplace_back(files[i]->probe.format->name);
          recording.planned_.push_back(std::move(files[i]));
        }
    if (!recording.planned_.empty()) recordings.push_back(std::move(recording));
  }
  return recordings;
}

Result<std::unique_ptr<Source>> open_recording(Recording recording, Catalog& catalog) {
  auto roster = std::make_unique<DeviceRoster>();
  std::size_t most_devices = 0;
  for (const auto& planned : recording.planned_) most_devices = std::max(most_devices, planned->probe.devices.size());
  roster->single_device = recording.planned_.size() > 1 && most_devices == 1;
  for (const auto& planned : recording.planned_)
    for (const LogDevice& device : planned->probe.devices) roster->resolve(device);
  roster->settle_ids();
  std::vector<std::unique_ptr<LogFile>> files;
  for (const auto& planned : recording.planned_) {
    auto file = open_log(*planned, catalog, *roster);
    if (!file) return fail(std::move(file.error()));
    files.push_back(std::move(*file));
    catalog.clock_is_relative |= planned->probe.relative;
  }
  return std::make_unique<RecordedSource>(std::move(roster), std::move(files));
}

}  // namespace vramtrack

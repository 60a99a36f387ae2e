#include "source/log/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/option.hpp"
#include "source/log/recognise.hpp"
#include "source/log/run_file.hpp"

namespace vramtrack {
namespace {

/// Merges the files of one recording by time, keeping only the current chunk of each in memory.
class RecordedSource final : public Source {
 public:
  RecordedSource(std::unique_ptr<DeviceRoster> roster, std::vector<std::unique_ptr<LogFile>> files)
      : roster_(std::move(roster)), files_(std::move(files)) {}

  Result<Progress> poll(Timestamp /*now*/, Batch& out) override {
    // Every file that may still have earlier samples must be read up to that time.
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
        until = std::min(until, file->complete_until());
      }
    }
    const auto first_sample = static_cast<std::ptrdiff_t>(out.samples.size());
    const auto first_event = static_cast<std::ptrdiff_t>(out.events.size());
    for (const auto& file : files_) {
      const auto samples = file->samples.begin() + static_cast<std::ptrdiff_t>(file->taken_samples);
      // A single file is already in order; several are cut at the time that the slowest of them has reached.
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
      // With several files, each warning must name its file.
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

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a != "-" && b != "-" && std::filesystem::equivalent(a, b, ignored);
}

std::string name_of(const LogDevice& device) {
  return device_id(device);
}

bool earlier_log(const LogTimes& a, const LogTimes& b) {
  return a.earliest != b.earliest ? a.earliest < b.earliest : a.latest < b.latest;
}

/// Whether one file ends before the other begins, or exactly then.
bool are_apart(const PlannedFile& a, const PlannedFile& b) {
  const LogTimes& first = std::min(a.times, b.times, earlier_log);
  const LogTimes& second = &first == &a.times ? b.times : a.times;
  return first.earliest < second.earliest && first.latest < second.latest &&
         first.latest - second.earliest <= kClockJitter;
}

/// A GPU in both, by UUID or PCI bus id, if both are files with dates and of one kind; otherwise nullptr.
const LogDevice* shared_device(const PlannedFile& a, const PlannedFile& b) {
  for (const PlannedFile* file : {&a, &b})
    if (file->is_stream() || file->detected.relative || !file->times.has_samples) return nullptr;
  if (a.detected.processes_only != b.detected.processes_only) return nullptr;
  for (const LogDevice& device : a.detected.devices)
    for (const LogDevice& other : b.detected.devices)
      if (compare(device, other) >= SameDevice::by_pci) return &device;
  return nullptr;
}

/// Sets of files that belong together; each set is identified by its first file.
class Groups {
 public:
  explicit Groups(std::size_t files) : group_(files) { std::iota(group_.begin(), group_.end(), std::size_t{0}); }
  void merge(std::size_t a, std::size_t b) {
    const auto [into, from] = std::minmax(group_[a], group_[b]);
    std::replace(group_.begin(), group_.end(), std::size_t{from}, std::size_t{into});
  }
  [[nodiscard]] std::size_t operator[](std::size_t file) const { return group_[file]; }
  [[nodiscard]] std::size_t size() const { return group_.size(); }
  void dissolve(std::size_t group) {
    for (std::size_t i = 0; i < group_.size(); ++i)
      if (group_[i] == group) group_[i] = i;
  }

 private:
  std::vector<std::size_t> group_;
};

std::string moment(Timestamp time) {
  return iso8601(std::chrono::floor<std::chrono::seconds>(time));
}

/// The error for two files that cover one GPU at the same time: judged separately, they might contradict each other.
std::string overlap(const PlannedFile& a, const PlannedFile& b, const LogDevice& shared) {
  const Timestamp from = std::max(a.times.earliest, b.times.earliest);
  const Timestamp to = std::min(a.times.latest, b.times.latest);
  return fmt::format(
      "{} and {} both contain GPU {} from {} to {}; remove these rows from one of them so that the files follow one "
      "another, or analyse them one by one",
      a.shown, b.shown, name_of(shared), moment(from), moment(to));
}

/// Groups files that continue one another: logs of one GPU (by UUID or PCI bus id) with times that do not overlap. An
/// Error if they do. Files without a common GPU may overlap, even if a third one has the GPUs of both: it is then
/// unclear which of them it continues, and they stay separate.
Result<Groups> find_continuations(const std::vector<std::unique_ptr<PlannedFile>>& files) {
  Groups logs(files.size());
  for (std::size_t i = 0; i < files.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const LogDevice* const shared = shared_device(*files[i], *files[j]);
      if (shared == nullptr) continue;
      if (!are_apart(*files[i], *files[j])) return fail(overlap(*files[j], *files[i], *shared));
      logs.merge(i, j);
    }
  for (std::size_t i = 0; i < files.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (logs[i] == logs[j] && !are_apart(*files[i], *files[j])) logs.dissolve(logs[i]);
  return logs;
}

/// The files of one log, in order of time.
std::vector<std::unique_ptr<PlannedFile>> take_log(std::vector<std::unique_ptr<PlannedFile>>& files, const Groups& logs,
                                                   std::size_t log) {
  std::vector<std::unique_ptr<PlannedFile>> parts;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (logs[i] == log) parts.push_back(std::move(files[i]));
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return earlier_log(a->times, b->times); });
  return parts;
}

/// A process log without a row: no processes were visible.
bool lists_no_process(const PlannedFile& file) {
  return file.detected.processes_only && file.detected.devices.empty();
}

/// "GPU 0", "GPU 0 and 3 more", "no GPU named"
std::string devices_words(const PlannedFile& file) {
  const std::vector<LogDevice>& devices = file.detected.devices;
  if (!has_id(devices.front())) return "no GPU named";
  return fmt::format("GPU {}{}", name_of(devices.front()),
                     devices.size() == 1 ? "" : fmt::format(" and {} more", devices.size() - 1));
}

/// The logs that the process log `process` belongs to; an Error if that is unclear.
Result<std::vector<std::size_t>> logs_of(const std::vector<std::unique_ptr<PlannedFile>>& files, const Groups& logs,
                                         std::size_t process) {
  const PlannedFile& p = *files[process];
  if (lists_no_process(p)) {
    // The fact that no process was visible can be reported with any of the others.
    for (std::size_t i = 0; i < files.size(); ++i)
      if (!lists_no_process(*files[i])) return std::vector<std::size_t>{i};
    return std::vector<std::size_t>{};
  }
  std::vector<std::size_t> joined;
  std::size_t undecided = SIZE_MAX;
  const auto join = [&](std::size_t log) {
    if (std::find(joined.begin(), joined.end(), log) == joined.end()) joined.push_back(log);
  };
  for (const LogDevice& device : p.detected.devices) {
    std::size_t found = SIZE_MAX;
    SameDevice how = SameDevice::unknown;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i]->detected.processes_only) continue;
      SameDevice best = SameDevice::no;
      for (const LogDevice& known : files[i]->detected.devices) best = std::max(best, compare(known, device));
      if (best == SameDevice::unknown) undecided = i;
      if (best <= SameDevice::unknown) continue;
      if (found != SIZE_MAX && best == how && logs[found] != logs[i])
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
    // No kind of name in common: the match is clear only if each side has just one GPU.
    std::size_t device_logs = 0;  // files that continue another are the same log
    for (std::size_t i = 0; i < files.size(); ++i)
      if (!files[i]->detected.processes_only && logs[i] == i) ++device_logs;
    if (device_logs == 1 && files[undecided]->detected.devices.size() == 1 && p.detected.devices.size() == 1) {
      join(undecided);
    } else {
      return fail(fmt::format(
          "{} ({}) and {} ({}) do not name GPUs alike, so it is unknown which processes belong to which GPU; "
          "analyse them separately, or record uuid (gpu_uuid) in both",
          files[undecided]->shown, devices_words(*files[undecided]), p.shown, devices_words(p)));
    }
  }
  for (const std::size_t log : joined)
    if (files[log]->detected.relative != p.detected.relative)
      return fail(fmt::format(
          "{} and {} name the same GPU, but only one of them has dates; give {}, or analyse them separately",
          files[log]->shown, p.shown, vramtrack::name_of(Option::start)));
  return joined;
}

/// Removes the logs of cards that report no figure: they add nothing to a list of processes, which has figures.
Status set_aside(std::vector<std::unique_ptr<PlannedFile>>& files) {
  const auto has_none = [](const auto& file) { return !file->detected.not_reported.empty(); };
  const auto silent = std::find_if(files.begin(), files.end(), has_none);
  if (silent == files.end()) return {};
  const auto list = std::find_if(files.begin(), files.end(), [](const auto& file) {
    return file->detected.processes_only && !file->is_empty && !lists_no_process(*file);
  });
  if (list == files.end()) return fail((*silent)->detected.not_reported);
  for (const auto& file : files)
    if (has_none(file))
      (*list)->beside = fmt::format(
          "{} holds no figure, because the card does not report its memory: what its processes "
          "hold is judged",
          file->shown);
  std::erase_if(files, has_none);
  return {};
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
  for (auto path = paths.begin(); path != paths.end(); ++path)
    if (std::any_of(paths.begin(), path, [&](const std::string& before) { return is_same_file(before, *path); }))
      return fail(fmt::format("{} is given twice; give each file once", *path));
  for (const std::string& path : paths) {
    auto recordings = recordings_in(path);
    if (!recordings) return fail(std::move(recordings.error()));
    for (RunRecording& recording : *recordings) {
      auto planned = recognise_log(recording.path, options, *zone);
      if (!planned) return fail(std::move(planned.error()));
      (*planned)->logs = std::move(recording.logs);
      (*planned)->beside = std::move(recording.note);
      files.push_back(std::move(*planned));
    }
  }

  if (const Status status = set_aside(files); !status) return fail(status.error());
  if (std::all_of(files.begin(), files.end(), [](const auto& file) { return file->is_empty; }))
    return fail(fmt::format("{}: is empty; was the recording started?", files.front()->shown));

  const auto continuations = find_continuations(files);
  if (!continuations) return fail(continuations.error());
  // A process log joins the device logs of its GPUs.
  const Groups& logs = *continuations;
  Groups group = logs;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i]->detected.processes_only) continue;
    auto joined = logs_of(files, logs, i);
    if (!joined) return fail(std::move(joined.error()));
    for (const std::size_t log : *joined) group.merge(i, log);
  }

  std::vector<Recording> recordings;
  for (std::size_t g = 0; g < files.size(); ++g) {
    Recording recording;
    for (const bool processes : {false, true}) {
      std::vector<std::size_t> members;
      for (std::size_t i = 0; i < files.size(); ++i)
        if (group[i] == g && files[i] != nullptr && files[i]->detected.processes_only == processes)
          members.push_back(i);
      for (const std::size_t i : members) {
        recording.files_.push_back(files[i]->path);
        recording.formats_.emplace_back(files[i]->detected.format->name);
      }
      for (const std::size_t i : members)
        if (logs[i] == i) recording.logs_.push_back(take_log(files, logs, i));
    }
    if (!recording.files_.empty()) recordings.push_back(std::move(recording));
  }
  return recordings;
}

namespace {

/// Returns an Error for both percentages and bytes, which cannot share a scale.
Status check_units(const std::vector<std::vector<std::unique_ptr<PlannedFile>>>& logs) {
  const PlannedFile* of[2] = {nullptr, nullptr};
  for (const auto& log : logs)
    for (const auto& part : log)
      if (!lists_no_process(*part)) of[part->detected.scale.unit == AmountUnit::percent ? 0 : 1] = part.get();
  if (of[0] == nullptr || of[1] == nullptr) return {};
  return fail(
      fmt::format("{} gives memory in percent, and {} gives it in bytes; give the size of the GPU's memory with {}, or "
                  "analyse them "
                  "separately",
                  of[0]->shown, of[1]->shown, vramtrack::name_of(Option::capacity)));
}

/// Times of day without dates count from one zero, the same in all logs of a recording; nullopt if there are none.
std::optional<Timestamp> earliest_begin(const std::vector<std::vector<std::unique_ptr<PlannedFile>>>& logs) {
  std::optional<Timestamp> begin;
  for (const auto& log : logs)
    for (const auto& part : log)
      if (part->detected.relative && part->times.begins_at)
        begin = std::min(begin.value_or(Timestamp::max()), *part->times.begins_at);
  return begin;
}

}  // namespace

Result<std::unique_ptr<Source>> open_recording(Recording recording, Catalog& catalog) {
  if (Status ok = check_units(recording.logs_); !ok) return fail(std::move(ok.error()));
  auto roster = std::make_unique<DeviceRoster>();
  std::size_t most_devices = 0;
  for (const auto& log : recording.logs_)
    for (const auto& part : log) most_devices = std::max(most_devices, part->detected.devices.size());
  roster->single_device = recording.logs_.size() > 1 && most_devices == 1;
  for (const auto& log : recording.logs_)
    for (const auto& part : log) {
      if (lists_no_process(*part)) continue;  // nor does it have a clock
      for (const LogDevice& device : part->detected.devices) roster->resolve(device);
      catalog.clock_is_relative |= part->detected.relative;
      if (catalog.scale == Scale{}) catalog.scale = part->detected.scale;
    }
  roster->assign_ids();
  const std::optional<Timestamp> begin = earliest_begin(recording.logs_);
  if (begin) catalog.scale.begins_s = seconds_between(Timestamp{}, *begin);
  std::vector<std::unique_ptr<LogFile>> files;
  for (auto& log : recording.logs_) {
    auto rows = std::make_unique<LogRows>(catalog, *roster, log.front()->shown, log.front()->options.capacity_bytes);
    if (begin && log.front()->times.begins_at) rows->begin_at(*begin);
    if (lists_no_process(*log.front()))
      rows->warn(
          fmt::format("no processes were visible where it was recorded, as in WSL and in containers{}; record it on "
                      "the host to learn which process grows",
                      log.front()->is_empty ? ", or its recording was not started: it is empty" : ""));
    if (!log.front()->beside.empty()) rows->warn(log.front()->beside);
    auto file = LogFile::open(std::move(log), std::move(rows));
    if (!file) return fail(std::move(file.error()));
    files.push_back(std::move(*file));
  }
  return std::make_unique<RecordedSource>(std::move(roster), std::move(files));
}

}  // namespace vramtrack

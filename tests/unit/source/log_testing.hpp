// Reads a recording to its end, for the tests of the log formats.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "paths.hpp"
#include "source/log/recording.hpp"

namespace vramtrack::logtest {

/// Time between two readings of a log without a clock.
constexpr double kReading_s = 60;

inline std::string fixture(const std::string& name) {
  return tests_dir() + "/fixtures/log/" + name;
}

/// Files that live as long as the test.
class Files {
 public:
  Files() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(info->test_suite_name()) + "_" + info->name();
    for (char& c : name)
      if (c == '/') c = '_';
    folder_ = std::filesystem::temp_directory_path() / ("vramtrack_" + name + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~Files() { std::filesystem::remove_all(folder_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  std::string write(const std::string& name, std::string_view content) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  std::filesystem::path folder_;
};

inline LogOptions utc() {
  LogOptions options;
  options.timezone = "UTC";
  return options;
}

/// The complete contents of a recording.
struct Reading {
  std::string error;
  std::vector<std::string> files;
  std::vector<std::string> formats;
  std::unique_ptr<Catalog> catalog = std::make_unique<Catalog>();
  std::vector<Sample> samples;
  std::vector<Event> events;
  SourceNotes notes;

  /// The number of memory series, and of their samples; other facts do not count.
  [[nodiscard]] std::size_t series() const {
    std::size_t count = 0;
    for (std::uint32_t id = 0; id < catalog->size(); ++id)
      if (!is_fact(catalog->key(SeriesId{id}).metric)) ++count;
    return count;
  }
  [[nodiscard]] std::size_t memory_samples() const {
    return static_cast<std::size_t>(std::count_if(
        samples.begin(), samples.end(), [this](const Sample& s) { return !is_fact(catalog->key(s.series).metric); }));
  }
  /// (seconds since the epoch to the millisecond, MiB) of one series, in the recorded order.
  [[nodiscard]] std::vector<std::pair<double, double>> of(Metric metric, const std::string& device,
                                                          std::uint32_t pid = 0, std::uint64_t ticks = 0) const {
    std::vector<std::pair<double, double>> out;
    const auto id = catalog->find({metric, device, pid, ticks});
    for (const Sample& s : samples)
      if (id && s.series == *id)
        out.emplace_back(static_cast<double>(s.time.time_since_epoch().count() / 1'000'000) / 1e3,
                         static_cast<double>(s.bytes) / 1048576.0);
    return out;
  }
  [[nodiscard]] std::vector<std::pair<double, double>> device(const std::string& id) const {
    return of(Metric::device_used, id);
  }
  /// The unchanged values of a series of the device.
  [[nodiscard]] std::vector<std::uint64_t> raw(Metric metric, const std::string& id) const {
    std::vector<std::uint64_t> out;
    for (const Sample& s : samples)
      if (catalog->key(s.series).metric == metric && catalog->key(s.series).device_id == id) out.push_back(s.bytes);
    return out;
  }
  [[nodiscard]] bool in_order() const {
    for (std::size_t i = 1; i < samples.size(); ++i)
      if (samples[i].time < samples[i - 1].time) return false;
    return true;
  }
  [[nodiscard]] std::string warnings() const {
    std::string all;
    for (const std::string& w : notes.warnings) all += w + "\n";
    return all;
  }
};

inline Reading read_recording(Recording recording) {
  Reading out;
  out.files = recording.files();
  out.formats = recording.formats();
  auto source = open_recording(std::move(recording), *out.catalog);
  if (!source) {
    out.error = source.error().message;
    return out;
  }
  Batch batch;
  for (Progress progress = Progress::more; progress == Progress::more;) {
    batch.clear();
    auto polled = (*source)->poll({}, batch);
    if (!polled) {
      out.error = polled.error().message;
      break;
    }
    progress = *polled;
    out.samples.insert(out.samples.end(), batch.samples.begin(), batch.samples.end());
    out.events.insert(out.events.end(), batch.events.begin(), batch.events.end());
  }
  out.notes = (*source)->notes();
  return out;
}

/// Reads files that form one recording.
inline Reading read_logs(const std::vector<std::string>& paths, const LogOptions& options = utc()) {
  auto plan = plan_recordings(paths, options);
  if (!plan || plan->size() != 1) {
    Reading out;
    out.error = plan ? std::to_string(plan->size()) + " recordings" : plan.error().message;
    return out;
  }
  return read_recording(std::move(plan->front()));
}

/// Reads text as a separate file.
inline Reading read_text(std::string_view text, const LogOptions& options = utc()) {
  Files files;
  return read_logs({files.write("log", text)}, options);
}

}  // namespace vramtrack::logtest

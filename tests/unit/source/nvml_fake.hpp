// What the nvml source's tests share: a scenario for the fake library and a source polled through it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "paths.hpp"
#include "source/source.hpp"

namespace vramtrack {

extern const SourceInfo nvml_source;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

/// The fake driver for one test. The scenario's tick is the number of the poll, from 0.
class FakeNvml {
 public:
  explicit FakeNvml(const std::string& scenario, const std::string& variant = "current") {
    file_ = std::filesystem::temp_directory_path() / ("vramtrack_fake_nvml_" + std::to_string(getpid()));
    std::ofstream(file_) << "clock env\n" << scenario;
    setenv("VRAMTRACK_FAKE_NVML", file_.c_str(), 1);
    unsetenv("VRAMTRACK_FAKE_NVML_STATE");
    set_tick(0);
    config.nvml_library = build_dir() + "/fake_nvml/" + variant + "/libnvidia-ml.so.1";
    config.proc_root = tests_dir() + "/fixtures/proc";
  }
  ~FakeNvml() {
    source.reset();
    std::filesystem::remove(file_);
  }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  Status open() {
    auto made = nvml_source.make(config, catalog);
    if (!made) return fail(made.error());
    source = std::move(*made);
    return {};
  }

  /// Polls once, `seconds` after the last poll; the tick is the poll's number.
  Batch poll(double seconds = 1) {
    if (!source) {
      const Status opened = open();
      EXPECT_TRUE(opened) << opened.error().message;
      if (!opened) return {};
    }
    set_tick(polls_++);
    now += from_seconds(seconds);
    Batch batch;
    const auto progress = source->poll(now, batch);
    EXPECT_TRUE(progress);
    for (const Sample& sample : batch.samples) EXPECT_EQ(sample.time, now);
    for (const Event& event : batch.events) EXPECT_EQ(event.time, now);
    return batch;
  }

  /// The bytes that the batch has for a series; nullopt if it has no sample.
  std::optional<std::uint64_t> bytes(const Batch& batch, Metric metric, const std::string& device,
                                     std::uint32_t pid = 0) const {
    std::optional<std::uint64_t> found;
    for (const Sample& sample : batch.samples) {
      const SeriesKey& key = catalog.key(sample.series);
      if (key.metric != metric || key.device_id != device || key.pid != pid) continue;
      EXPECT_FALSE(found) << "two samples for " << device << " pid " << pid;
      found = sample.bytes;
    }
    return found;
  }
  std::optional<std::uint64_t> used(const Batch& batch, const std::string& device) const {
    return bytes(batch, Metric::device_used, device);
  }
  std::optional<std::uint64_t> process(const Batch& batch, const std::string& device, std::uint32_t pid) const {
    return bytes(batch, Metric::process_used, device, pid);
  }

  static void set_tick(std::uint64_t tick) { setenv("VRAMTRACK_FAKE_NVML_TICK", std::to_string(tick).c_str(), 1); }

  SourcesConfig config;
  Catalog catalog;
  std::unique_ptr<Source> source;
  Timestamp now;

 private:
  std::filesystem::path file_;
  std::uint64_t polls_ = 0;
};

inline std::vector<Event> events_of(const Batch& batch, Event::Kind kind) {
  std::vector<Event> found;
  for (const Event& event : batch.events)
    if (event.kind == kind) found.push_back(event);
  return found;
}

}  // namespace vramtrack

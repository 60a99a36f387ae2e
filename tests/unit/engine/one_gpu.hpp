// One GPU of 24 GiB and its processes, fed to an engine tick by tick.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../at.hpp"
#include "engine/engine.hpp"
#include "report/conclusion_words.hpp"

namespace vramtrack {

inline constexpr std::uint64_t kMiB = 1048576;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

/// One GPU of 24 GiB and its processes, fed one second at a time.
class OneGpu : public testing::Test {
 protected:
  OneGpu() {
    DeviceInfo device;
    device.id = "GPU-a";
    device.index = 0;
    device.capacity_bytes = 24 * kGiB;
    catalog.describe(device);
    device_series = catalog.intern({Metric::device_used, "GPU-a", 0, 0});
  }

  SeriesId process(std::uint32_t pid, const std::string& command) {
    ProcessInfo info;
    info.pid = pid;
    info.start_ticks = 1000 + pid;
    info.command = command;
    catalog.describe(info);
    return catalog.intern({Metric::process_used, "GPU-a", pid, info.start_ticks});
  }

  void start(const Config& config = {}) {
    engine = std::make_unique<Engine>(config, catalog);
    engine->on_alert([this](const AlertChange& change) { changes.push_back(change); });
  }

  /// The device first, then its processes: the engine must not depend on the order.
  void tick(double t, std::uint64_t device_bytes,
            const std::vector<std::pair<SeriesId, std::uint64_t>>& processes = {}) {
    Batch batch;
    batch.samples.push_back({at(t), device_series, device_bytes});
    for (const auto& [id, bytes] : processes) batch.samples.push_back({at(t), id, bytes});
    engine->ingest(batch);
  }

  void end_process(double t, std::uint32_t pid, bool ran_out_of_memory = false) {
    Batch batch;
    Event event;
    event.time = at(t);
    event.kind = Event::Kind::process_ended;
    event.pid = pid;
    event.ran_out_of_memory = ran_out_of_memory;
    event.pid_start_ticks = 1000 + pid;
    batch.events.push_back(event);
    engine->ingest(batch);
  }

  /// Lasts as long as the fixture, so that a reference into an earlier view stays valid.
  const SeriesView& seen(SeriesId id) {
    views.push_back(engine->view());
    const auto& view = views.back();
    return *std::find_if(view->series.begin(), view->series.end(), [&](const SeriesView& s) { return s.id == id; });
  }

  /// The records of its leaks: first those that people were notified of, then the others.
  std::vector<Alert> leaks_of(SeriesId id) {
    const SeriesView& series = seen(id);
    std::vector<Alert> leaks = series.alerts;
    leaks.insert(leaks.end(), series.suspicions.begin(), series.suspicions.end());
    std::erase_if(leaks, [](const Alert& a) { return !a.finding.leak; });
    return leaks;
  }

  ConclusionWords told_of(SeriesId id) {
    const SeriesView& series = seen(id);
    return conclusion_words(*views.back(), series);
  }

  /// A quarter of an hour at 4 GiB, then 4 MiB/s: certain enough for an alert some minutes later.
  static std::uint64_t leak(double t) {
    return 4 * kGiB + (t > 900 ? static_cast<std::uint64_t>(t - 900) * 4 * kMiB : 0);
  }

  /// Remembers the runs of programs in `known_programs`, in place of a store.
  ProgramMemory memory_of_programs() {
    ProgramMemory memory;
    memory.find = [this](const ProgramIdentity& identity) -> std::optional<Program> {
      const auto it = known_programs.find(identity.text);
      return it == known_programs.end() ? std::nullopt : std::optional(it->second);
    };
    memory.put = [this](const ProgramIdentity& identity, const Program& program) {
      known_programs[identity.text] = program;
    };
    return memory;
  }

  std::map<std::string, Program> known_programs;
  Catalog catalog;
  SeriesId device_series{};
  std::unique_ptr<Engine> engine;
  std::vector<AlertChange> changes;
  std::vector<std::shared_ptr<const View>> views;
};

}  // namespace vramtrack

// One verdict, whichever way the samples come: live tick by tick, replayed from the store, analysed from a log. Data
// that the formats carry alike is compared to the last bit of every figure and the last letter of every word.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "../temp_folder.hpp"
#include "recorded/recorded.hpp"
#include "report/report.hpp"
#include "source/log/recording.hpp"
#include "source/tick_reader.hpp"
#include "store/store.hpp"
#include "told.hpp"

namespace vramtrack {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
const Timestamp kStart{std::chrono::sys_days{std::chrono::year{2026} / 1 / 5}};

/// Takes everything from `source`, like replay and analyze: `by_tick`, or in the stretches that it delivers.
Played play_source(Source& source, const std::shared_ptr<Catalog>& catalog, bool by_tick) {
  Played played = begin(catalog);
  if (by_tick) {
    TickReader reader(source);
    while (const Tick* const tick = reader.next()) feed(played, tick->batch);
    EXPECT_FALSE(reader.broken());
  } else {
    for (Progress progress = Progress::more; progress == Progress::more;) {
      Batch batch;
      const auto polled = source.poll({}, batch);
      EXPECT_TRUE(polled) << polled.error().message;
      played.engine->ingest(batch);
      progress = polled ? *polled : Progress::end;
    }
  }
  played.engine->finish();
  EXPECT_EQ(source.notes().skipped_lines, 0U) << source.notes().first_skipped.at(0);
  return played;
}

class SameEverywhere : public testing::TestWithParam<std::string> {
 protected:
  SameEverywhere() {
    scenario_ = load(GetParam());
    if (!scenario_.start) scenario_.start = kStart;  // neither a store nor nvidia-smi has relative times
  }
  TempFolder folder_;
  sim::Scenario scenario_;
};

// Exact, to the byte of the JSON report and of every alert as it was reported: the store keeps samples, stamps, events
// and the data about devices and processes as they came.
TEST_P(SameEverywhere, LiveAndReplayed) {
  const std::string path = folder_.file("vramtrack.db");
  const auto catalog = std::make_shared<Catalog>();
  Played live = begin(catalog);
  {
    StoreConfig config;
    config.path = path;
    config.flush_seconds = 600;
    config.raw_hours = 1000;
    auto store = Store::open(config, *catalog, kStart);
    ASSERT_TRUE(store) << store.error().message;
    const auto source = sim::make_simulation(scenario_, *catalog);
    for (Progress progress = Progress::more; progress == Progress::more;) {
      Batch tick;
      progress = *source->poll({}, tick);
      if (tick.samples.empty() && tick.events.empty()) continue;
      const Status appended = (*store)->append(tick);
      ASSERT_TRUE(appended) << appended.error().message;
      feed(live, tick);
    }
  }
  const auto again = std::make_shared<Catalog>();
  again->processes_are_listed = catalog->processes_are_listed;
  const auto part = plan_one_recorded(recorded_at(path), {path}, {});
  ASSERT_TRUE(part) << part.error().message;
  auto source = part->open(*again);
  ASSERT_TRUE(source) << source.error().message;
  const Played replayed = play_source(**source, again, true);
  EXPECT_EQ(in_full(live), in_full(replayed));
  const auto* json = find_report("json");
  EXPECT_EQ(json->render(*live.engine->view(), {}), json->render(*replayed.engine->view(), {}));
}

/// The part of `recorded` that a log of nvidia-smi can hold: whole MiB and milliseconds, no process starts, no events.
Recorded as_logged(const Recorded& recorded, bool processes) {
  Recorded out{recorded.scenario, std::make_shared<Catalog>(), {}};
  for (const DeviceInfo& device : recorded.catalog->devices()) out.catalog->describe(device);
  for (const Batch& tick : recorded.ticks) {
    Batch kept;
    for (Sample sample : tick.samples) {
      SeriesKey key = recorded.catalog->key(sample.series);
      if (key.metric != Metric::device_used && !(processes && key.metric == Metric::process_used)) continue;
      if (const ProcessInfo* process = recorded.catalog->process(key.pid, key.pid_start_ticks)) {
        ProcessInfo named;
        named.pid = key.pid;
        named.name = named.command = process->command;
        out.catalog->describe(named);
      }
      key.pid_start_ticks = 0;
      sample.series = out.catalog->intern(key);
      sample.bytes -= sample.bytes % kMiB;
      sample.time = std::chrono::floor<std::chrono::milliseconds>(sample.time);
      kept.samples.push_back(sample);
    }
    if (!kept.samples.empty()) out.ticks.push_back(std::move(kept));
  }
  return out;
}

std::string stamp(Timestamp time) {
  std::string text = iso8601(time);
  text.pop_back();
  if (text.size() == 19) text += ".000";
  text[4] = text[7] = '/';
  text[10] = ' ';
  return text;
}

/// Writes `recorded` as nvidia-smi logs it; returns the paths.
std::vector<std::string> write_logs(const Recorded& recorded, const std::string& folder) {
  const std::vector<std::string> paths = {folder + "/gpu.csv", folder + "/apps.csv"};
  std::ofstream gpu(paths[0]);
  std::ofstream apps(paths[1]);
  gpu << "timestamp, index, uuid, name, memory.used [MiB], memory.total [MiB]\n";
  apps << "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n";
  bool any_process = false;
  for (const Batch& tick : recorded.ticks)
    for (const Sample& sample : tick.samples) {
      const SeriesKey& key = recorded.catalog->key(sample.series);
      if (key.pid == 0) {
        const DeviceInfo& device = *recorded.catalog->device(key.device_id);
        gpu << fmt::format("{}, {}, {}, {}, {} MiB, {}\n", stamp(sample.time), device.index.value_or(0), key.device_id,
                           device.name, sample.bytes / kMiB,
                           device.capacity_bytes ? fmt::format("{} MiB", *device.capacity_bytes / kMiB) : "[N/A]");
      } else {
        any_process = true;
        apps << fmt::format("{}, {}, {}, {}, {} MiB\n", stamp(sample.time), key.device_id, key.pid,
                            recorded.catalog->process(key.pid, 0)->command, sample.bytes / kMiB);
      }
    }
  return any_process ? paths : std::vector<std::string>{paths[0]};
}

Played analysed(const std::vector<std::string>& paths) {
  LogOptions options;
  options.timezone = "UTC";
  auto recordings = plan_recordings(paths, options);
  EXPECT_TRUE(recordings) << recordings.error().message;
  EXPECT_EQ(recordings->size(), 1U);
  const auto catalog = std::make_shared<Catalog>();
  auto source = open_recording(std::move(recordings->at(0)), *catalog);
  EXPECT_TRUE(source) << source.error().message;
  return play_source(**source, catalog, false);
}

bool in_order(const sim::Scenario& scenario) {
  return std::none_of(scenario.faults.begin(), scenario.faults.end(),
                      [](const sim::FaultSpec& f) { return f.kind == sim::FaultSpec::Kind::clock_step; });
}

// Exact: a device's log.
TEST_P(SameEverywhere, LiveAndAnalysed) {
  if (!in_order(scenario_)) GTEST_SKIP() << "a clock that is set back: a log is put in order, a watch cannot be";
  const Recorded recorded = as_logged(record(scenario_), false);
  Played live = begin(recorded);
  for (const Batch& tick : recorded.ticks) feed(live, tick);
  EXPECT_EQ(in_full(live), in_full(analysed(write_logs(recorded, folder_.path()))));
}

// Exact: a device's log and its processes' log, as long as no process ends. A log does not show when one has ended,
// whereas a watch detects it at once; from there on they may differ.
TEST_P(SameEverywhere, LiveAndAnalysedWithItsProcesses) {
  if (!in_order(scenario_)) GTEST_SKIP() << "a clock that is set back: a log is put in order, a watch cannot be";
  Recorded all = record(scenario_);
  const auto ends = [](const Batch& tick) {
    return std::any_of(tick.events.begin(), tick.events.end(),
                       [](const Event& event) { return event.kind == Event::Kind::process_ended; });
  };
  all.ticks.erase(std::find_if(all.ticks.begin(), all.ticks.end(), ends), all.ticks.end());
  const Recorded recorded = as_logged(all, true);
  Played live = begin(recorded);
  for (const Batch& tick : recorded.ticks) feed(live, tick);
  EXPECT_EQ(in_full(live), in_full(analysed(write_logs(recorded, folder_.path()))));
}

// Exact: the same verdict in seconds and in milliseconds. (Dates: LiveAndAnalysed.)
TEST_P(SameEverywhere, InAnyUnitOfTime) {
  if (!in_order(scenario_)) GTEST_SKIP() << "a clock that is set back: a log is put in order, a watch cannot be";
  scenario_.start = Timestamp{};
  const Recorded recorded = as_logged(record(scenario_), false);
  const auto in_unit = [&](const std::string& column, const std::function<std::string(Timestamp)>& written) {
    const std::string path = folder_.file(column + ".csv");
    std::ofstream csv(path);
    csv << column << ",mem_used_mib,mem_total_mib\n";
    for (const Batch& tick : recorded.ticks) {
      const SeriesKey& key = recorded.catalog->key(tick.samples.front().series);
      const DeviceInfo& device = *recorded.catalog->device(key.device_id);
      csv << written(tick.samples.front().time) << ',' << tick.samples.front().bytes / kMiB << ','
          << (device.capacity_bytes ? fmt::format("{}", *device.capacity_bytes / kMiB) : "") << '\n';
    }
    csv.close();
    return in_full(analysed({path}));
  };
  const auto ms = [](Timestamp time) { return time.time_since_epoch() / std::chrono::milliseconds{1}; };
  const std::string seconds =
      in_unit("t_s", [&](Timestamp time) { return fmt::format("{}.{:03}", ms(time) / 1000, ms(time) % 1000); });
  EXPECT_EQ(seconds, in_unit("t_ms", [&](Timestamp time) { return fmt::format("{}", ms(time)); }));
}

INSTANTIATE_TEST_SUITE_P(All, SameEverywhere, testing::ValuesIn(scenario_files()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

}  // namespace
}  // namespace vramtrack

// The facts that a round turns into samples: what processes read, and how busy they and the devices were.
#include "live/progress_rounds.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

class Rounds : public ::testing::Test {
 protected:
  Rounds() {
    ProcessInfo info;
    info.pid = 10;
    info.start_ticks = 5;
    info.command = "python app.py";
    catalog_.describe(info);
    file("stat", "10 (python) R 1 10 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n");
    file("status", "Name:\tpython\n");
    read(0);
  }
  void file(const std::string& name, const std::string& text) {
    const auto path = std::filesystem::path(folder_.path()) / "10" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void read(std::uint64_t bytes) { file("io", fmt::format("rchar: {}\nwchar: 0\nread_bytes: 0\n", bytes)); }
  static SourcesConfig sources(const TempFolder& folder) {
    SourcesConfig config;
    config.proc_root = folder.path();
    config.sys_root = folder.path() + "/sys";
    return config;
  }
  /// Polls once; returns the facts that this adds.
  std::map<Metric, std::uint64_t> poll(ProgressRounds& rounds, double busy, std::optional<double> process_busy = {}) {
    const Timestamp now{from_seconds(t_s_)};
    t_s_ += 10;
    Batch batch;
    batch.samples.push_back({now, memory_, 4ULL << 30});
    DeviceReading reading;
    reading.time = now;
    reading.device_id = "GPU-a";
    reading.gpu_utilisation_ratio = busy;
    batch.readings.push_back(reading);
    if (process_busy) batch.loads.push_back({now, memory_, {process_busy, {}, {}}});
    rounds.add(catalog_, now, batch);
    std::map<Metric, std::uint64_t> out;
    for (const Sample& s : batch.samples)
      if (is_fact(catalog_.key(s.series).metric)) out[catalog_.key(s.series).metric] = s.bytes;
    EXPECT_EQ(batch.progress.size(), stalls_ && !out.empty() ? 1U : 0U);
    return out;
  }

  TempFolder folder_;
  Catalog catalog_;
  SeriesId memory_ = catalog_.intern({Metric::process_used, "GPU-a", 10, 5});
  double t_s_ = 0;
  bool stalls_ = true;
};

TEST_F(Rounds, TellWhatIsReadAndHowBusyItWasSinceTheLast) {
  ProgressRounds rounds({}, sources(folder_));
  using Facts = std::map<Metric, std::uint64_t>;
  EXPECT_EQ(poll(rounds, 0.2), (Facts{{Metric::device_busy, 2000}, {Metric::process_read, 0}}));
  read(3ULL << 30);
  EXPECT_EQ(poll(rounds, 0), Facts{}) << "a round is due twice a minute";
  EXPECT_EQ(poll(rounds, 0.3, 0.3), Facts{});
  EXPECT_EQ(poll(rounds, 0.6, 0.6),
            (Facts{{Metric::device_busy, 3000}, {Metric::process_busy, 3000}, {Metric::process_read, 3ULL << 30}}));
  EXPECT_EQ(poll(rounds, 0), Facts{});
  EXPECT_EQ(poll(rounds, 0), Facts{});
  EXPECT_EQ(poll(rounds, 0)[Metric::process_busy], 0U) << "a driver does not list a process that does nothing";
}

/// The process began 0.05 s after the machine.
TEST_F(Rounds, TellOnceHowOldAProcessIs) {
  std::ofstream(std::filesystem::path(folder_.path()) / "uptime") << "32400.07 64000.00\n";
  ProgressRounds rounds({}, sources(folder_));
  EXPECT_EQ(poll(rounds, 0)[Metric::process_age], 32400U);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(poll(rounds, 0).contains(Metric::process_age));
}

TEST_F(Rounds, GoOnWhereStallsAreNotLookedFor) {
  StallConfig config;
  config.minutes = 0;
  stalls_ = false;
  ProgressRounds rounds(config, sources(folder_));
  EXPECT_EQ(poll(rounds, 0.2).size(), 2U);
  EXPECT_EQ(poll(rounds, 0.2).size(), 0U);
}

}  // namespace
}  // namespace vramtrack

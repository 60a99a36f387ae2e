// A restarted watch continues where the previous one ended.
#include "live/resume.hpp"

#include <gmock/gmock.h>

#include "../manual_clock.hpp"
#include "../temp_folder.hpp"
#include "live/loop.hpp"

namespace vramtrack {
namespace {

using namespace std::chrono_literals;
constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kGiB = 1U << 30U;

/// A 24 GiB device with a process that leaks 300 MiB per minute from the test's epoch on.
class Leaking final : public Source {
 public:
  Leaking(Catalog& catalog, Timestamp begin) : begin_(begin) {
    catalog.describe(DeviceInfo{.id = "GPU-1", .index = 0, .capacity_bytes = 24 * kGiB});
    catalog.describe(ProcessInfo{.pid = 4242, .start_ticks = 77, .user = "ann", .command = "python train.py"});
    used_ = catalog.intern({.metric = Metric::device_used, .device_id = "GPU-1"});
    process_ =
        catalog.intern({.metric = Metric::process_used, .device_id = "GPU-1", .pid = 4242, .pid_start_ticks = 77});
  }
  Result<Progress> poll(Timestamp now, Batch& out) override {
    const auto leaked = static_cast<std::uint64_t>(seconds_between(begin_, now) / 60 * 300) * kMiB;
    out.samples.push_back({now, used_, 5 * kGiB + leaked});
    out.samples.push_back({now, process_, 4 * kGiB + leaked});
    return Progress::more;
  }
  const SourceNotes& notes() const override { return notes_; }

 private:
  Timestamp begin_;
  SeriesId used_{};
  SeriesId process_{};
  SourceNotes notes_;
};

struct Watch {
  std::vector<std::string> alerts;
  std::unique_ptr<Loop> loop;

  Watch(const std::shared_ptr<ManualTime>& time, Timestamp begin, const std::string& path, const std::string& proc) {
    Config config;
    config.watch.interval_seconds = 5;
    config.sources.proc_root = proc;
    LoopInput input;
    input.catalog = std::make_unique<Catalog>();
    auto source = std::make_unique<Leaking>(*input.catalog, begin);
    input.sources.push_back(LiveSource{.name = "fake", .source = std::move(source)});
    loop = std::make_unique<Loop>(config, std::move(input), manual_clock(time));
    Listener listener;
    listener.alert = [this](const AlertNotice& told) { alerts.emplace_back(to_string(told.news)); };
    loop->pipeline().listen(listener);
    StoreConfig store = config.store;
    store.path = path;
    EXPECT_TRUE(loop->record_into(store));
  }
  void run(int ticks) {
    for (int i = 0; i < ticks && loop->clock().sleep_until(loop->next()); ++i) loop->tick();
  }
  ~Watch() {
    if (loop) loop->finish();
  }
};

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() {
    time->boot_id = "boot-1";
    // /proc of a machine on which the process is alive.
    process_lives(true);
  }
  void process_lives(bool lives) const {
    std::filesystem::create_directories(proc + "/4242");
    std::ofstream(proc + "/4242/stat") << "4242 (python) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 " << (lives ? 77 : 99)
                                       << " 1000 100 0\n";
  }
  std::vector<Alert> stored_alerts() const {
    Catalog catalog;
    auto reader = StoreReader::open(path);
    EXPECT_TRUE(reader);
    auto alerts = (*reader)->alerts(catalog);
    EXPECT_TRUE(alerts);
    return alerts ? *alerts : std::vector<Alert>{};
  }

  TempFolder folder;
  std::string path = folder.file("vramtrack.db");
  std::string proc = folder.file("proc");
  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  Timestamp begin = time->wall;
};

/// The number of 5 s ticks until the alert of a watch that is never interrupted.
int ticks_to_alert(const std::shared_ptr<ManualTime>& like) {
  const auto time = std::make_shared<ManualTime>(*like);
  const TempFolder folder;
  Watch watch(time, time->wall, folder.file("s.db"), folder.file("none"));
  int ticks = 0;
  while (watch.alerts.empty() && ticks < 1000) {
    watch.run(1);
    ++ticks;
  }
  return ticks;
}

TEST_F(ResumeTest, ALeakThatWasHalfDecidedIsNotForgotten) {
  const int needed = ticks_to_alert(time);
  ASSERT_GT(needed, 40);
  ASSERT_LT(needed, 600);
  {
    Watch first(time, begin, path, proc);
    first.run(needed * 3 / 4);
    EXPECT_TRUE(first.alerts.empty());
  }
  time->pass(10s);
  Watch second(time, begin, path, proc);
  int ticks = 0;
  while (second.alerts.empty() && ticks < needed) {
    second.run(1);
    ++ticks;
  }
  EXPECT_LE(ticks, needed / 2);
  EXPECT_EQ(second.loop->pipeline().view()->series.size(), 3U) << "the device, its process, and what nobody holds";
}

TEST_F(ResumeTest, AnAlertThatStandsIsNotRaisedAgain) {
  const int needed = ticks_to_alert(time);
  Alert raised;
  {
    Watch first(time, begin, path, proc);
    first.run(needed + 60);
    ASSERT_FALSE(first.alerts.empty());
  }
  const std::vector<Alert> before = stored_alerts();
  ASSERT_FALSE(before.empty());
  time->pass(30s);
  {
    Watch second(time, begin, path, proc);
    second.run(60);
    EXPECT_THAT(second.alerts, testing::Not(testing::Contains("raised")));
    const auto view = second.loop->pipeline().view();
    for (const SeriesView& s : view->series) {
      if (s.key.metric == Metric::device_unattributed) continue;
      ASSERT_EQ(s.alerts.size(), 1U);
      EXPECT_TRUE(s.verdict.finding.leak);
      EXPECT_EQ(s.alerts.front().incident, before.front().incident) << "one leak, by one name, over the restart";
    }
    EXPECT_EQ(view->series.front().alerts.front().raised, before.front().raised);
  }
  EXPECT_EQ(stored_alerts().size(), before.size());
}

TEST_F(ResumeTest, AProcessThatEndedMeanwhileHasEnded) {
  {
    Watch first(time, begin, path, proc);
    first.run(100);
  }
  time->pass(30s);
  process_lives(false);
  Watch second(time, begin, path, proc);
  std::vector<Event> events;
  Listener listener;
  listener.event = [&](const Event& event) {
    if (event.kind != Event::Kind::capacity) events.push_back(event);
  };
  second.loop->pipeline().listen(listener);
  second.run(1);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events.front().kind, Event::Kind::process_ended);
  EXPECT_EQ(events.front().pid, 4242U);
  second.loop->finish();
  auto reader = StoreReader::open(path);
  ASSERT_TRUE(reader);
  const auto programs = (*reader)->programs();
  ASSERT_TRUE(programs);
  ASSERT_EQ(programs->size(), 1U) << "the run is remembered";
  EXPECT_EQ(programs->front().name, "python train.py");
}

TEST_F(ResumeTest, AnotherBootBeginsAnew) {
  {
    Watch first(time, begin, path, proc);
    first.run(100);
  }
  time->pass(30s);
  time->boot_id = "boot-2";
  Watch second(time, begin, path, proc);
  EXPECT_TRUE(second.loop->pipeline().view()->series.empty());
}

TEST_F(ResumeTest, TheStoreSaysWhetherAWatchWentOn) {
  for (int i = 0; i < 2; ++i) {
    Watch watch(time, begin, path, proc);
    watch.run(10);
    time->pass(30s);
  }
  auto reader = StoreReader::open(path);
  ASSERT_TRUE(reader);
  Catalog catalog;
  Batch batch;
  std::vector<std::pair<bool, bool>> starts;  // what each one had: runs, and the previous samples
  while (*(*reader)->read(catalog, batch))
    for (const Event& event : batch.events)
      if (event.kind == Event::Kind::watch_started) starts.emplace_back(event.knew_runs, event.went_on);
  EXPECT_THAT(starts, testing::ElementsAre(std::pair(true, false), std::pair(true, true)));
}

}  // namespace
}  // namespace vramtrack

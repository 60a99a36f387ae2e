#include "host/process_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace vramtrack {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// A /proc made by the test, and a watch over it.
class ProcessWatchTest : public testing::Test {
 protected:
  ProcessWatchTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() /
            ("vramtrack_watch_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(root_);
    watch_ = std::make_unique<ProcessWatch>(root_.string(), catalog_);
    gpu_ = watch_->device("GPU-a");
  }
  ~ProcessWatchTest() override { std::filesystem::remove_all(root_); }

  void start(std::uint32_t pid, std::uint64_t ticks, const std::string& command = "python", char state = 'S') {
    const auto folder = root_ / std::to_string(pid);
    std::filesystem::create_directories(folder);
    write(folder / "stat", std::to_string(pid) + " (name) " + state + " 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " +
                               std::to_string(ticks) + " 0 0\n");
    write(folder / "cmdline", command);
    write(folder / "maps", "");
  }
  void map(std::uint32_t pid, const std::string& path) {
    write(root_ / std::to_string(pid) / "maps", "7f00-7f01 r-xp 00000000 fe:01 1 " + path + "\n");
  }
  void stop(std::uint32_t pid) { std::filesystem::remove_all(root_ / std::to_string(pid)); }

  static void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

  struct Listed {
    std::uint32_t pid;
    std::optional<std::uint64_t> bytes;
  };
  Batch poll(const std::vector<Listed>& processes, double seconds = 1, bool answered = true) {
    now_ += from_seconds(seconds);
    watch_->begin(now_);
    if (!answered) watch_->unanswered(gpu_);
    for (const Listed& p : processes) watch_->listed(gpu_, p.pid, p.bytes, "C");
    Batch batch;
    watch_->end(batch);
    return batch;
  }
  const SeriesKey& key(const Sample& sample) { return catalog_.key(sample.series); }

  std::filesystem::path root_;
  Catalog catalog_;
  std::unique_ptr<ProcessWatch> watch_;
  std::size_t gpu_ = 0;
  Timestamp now_;
};

TEST_F(ProcessWatchTest, AListedProcessIsASampleOfOneSeries) {
  start(10, 500);
  const Batch first = poll({{10, 100}});
  const Batch second = poll({{10, 200}});
  ASSERT_THAT(first.samples, SizeIs(1));
  ASSERT_THAT(second.samples, SizeIs(1));
  EXPECT_EQ(first.samples[0].series, second.samples[0].series);
  EXPECT_EQ(key(first.samples[0]), (SeriesKey{Metric::process_used, "GPU-a", 10, 500}));
  EXPECT_EQ(second.samples[0].bytes, 200U);
  EXPECT_EQ(catalog_.process(10, 500)->kind, "C");
}

TEST_F(ProcessWatchTest, TellsCpuAndHostMemoryOfTheLineItReadsAnyway) {
  const auto stat = [this](int user_ticks, int system_ticks, int pages) {
    write(root_ / "10" / "stat", "10 (name) R 1 1 1 0 -1 0 0 0 0 0 " + std::to_string(user_ticks) + ' ' +
                                     std::to_string(system_ticks) + " 0 0 20 0 1 0 500 0 " + std::to_string(pages) +
                                     '\n');
  };
  start(10, 500);
  stat(100, 20, 3);
  const Batch first = poll({{10, 100}});
  ASSERT_THAT(first.loads, SizeIs(1));
  EXPECT_EQ(first.loads[0].series, first.samples[0].series);
  EXPECT_EQ(first.loads[0].load.host_bytes, 3U * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(first.loads[0].load.cpu_ratio, std::nullopt) << "of one reading nothing is known";
  const double ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  stat(220, 50, 4);
  const Batch second = poll({{10, 100}}, 2);
  ASSERT_THAT(second.loads, SizeIs(1));
  EXPECT_DOUBLE_EQ(second.loads[0].load.cpu_ratio.value_or(-1), 150 / ticks_per_s / 2);
  // Over a very short time, the hundredths of a second that the kernel counts are meaningless.
  stat(221, 50, 4);
  EXPECT_EQ(poll({{10, 100}}, 0.1).loads[0].load.cpu_ratio, second.loads[0].load.cpu_ratio);
  // It is no longer listed, so its earlier load no longer applies.
  EXPECT_EQ(poll({}).loads[0].load, ProcessLoad{});
}

TEST_F(ProcessWatchTest, OfAProcessThatIsNotVisibleNoLoadIsKnown) {
  EXPECT_THAT(poll({{10, 100}}).loads, IsEmpty());
}

TEST_F(ProcessWatchTest, AReusedPidIsAnotherSeriesAndTheFirstHasEnded) {
  start(10, 500);
  const Batch first = poll({{10, 100}});
  start(10, 900, "other");
  const Batch second = poll({{10, 100}});
  ASSERT_THAT(second.samples, SizeIs(1));
  EXPECT_NE(first.samples[0].series, second.samples[0].series);
  EXPECT_EQ(key(second.samples[0]).pid_start_ticks, 900U);
  ASSERT_THAT(second.events, SizeIs(1));
  EXPECT_EQ(second.events[0].kind, Event::Kind::process_ended);
  EXPECT_EQ(second.events[0].pid_start_ticks, 500U);
  EXPECT_EQ(catalog_.process(10, 900)->command, "other");
}

TEST_F(ProcessWatchTest, AnEndedProcessIsSaidOnce) {
  start(10, 500);
  poll({{10, 100}});
  stop(10);
  const Batch ended = poll({});
  EXPECT_THAT(ended.samples, IsEmpty());
  ASSERT_THAT(ended.events, SizeIs(1));
  EXPECT_EQ(ended.events[0].kind, Event::Kind::process_ended);
  EXPECT_EQ(ended.events[0].pid, 10U);
  EXPECT_EQ(ended.events[0].pid_start_ticks, 500U);
  EXPECT_THAT(poll({}).events, IsEmpty());
}

TEST_F(ProcessWatchTest, AZombieThatTheDriverNoLongerListsHasEnded) {
  start(10, 500);
  poll({{10, 100}});
  start(10, 500, "python", 'Z');
  EXPECT_THAT(poll({}).events, SizeIs(1));
}

TEST_F(ProcessWatchTest, ALivingProcessThatLeftTheListHoldsNothing) {
  start(10, 500);
  poll({{10, 100}});
  const Batch left = poll({});
  EXPECT_THAT(left.events, IsEmpty());
  ASSERT_THAT(left.samples, SizeIs(1));
  EXPECT_EQ(left.samples[0].bytes, 0U);
  EXPECT_THAT(poll({}).samples, IsEmpty()) << "said once";
  EXPECT_THAT(poll({{10, 50}}).samples, SizeIs(1)) << "it came back";
  stop(10);
  EXPECT_THAT(poll({}).events, SizeIs(1)) << "its end is still seen";
}

TEST_F(ProcessWatchTest, OneStillListedThoughGoneKeepsItsSeries) {
  start(10, 500);
  const Batch first = poll({{10, 100}});
  stop(10);
  const Batch held = poll({{10, 100}});
  ASSERT_THAT(held.samples, SizeIs(1));
  EXPECT_EQ(held.samples[0].series, first.samples[0].series);
  EXPECT_THAT(held.events, IsEmpty());
}

TEST_F(ProcessWatchTest, NothingIsConcludedFromAListThatCouldNotBeRead) {
  start(10, 500);
  poll({{10, 100}, {77, 5}});
  const Batch silent = poll({}, 1, false);
  EXPECT_THAT(silent.samples, IsEmpty());
  EXPECT_THAT(silent.events, IsEmpty());
  EXPECT_THAT(poll({{10, 100}, {77, 5}}).samples, SizeIs(2));
}

TEST_F(ProcessWatchTest, MissingBytesAreNoSample) {
  start(10, 500);
  EXPECT_THAT(poll({{10, std::nullopt}}).samples, IsEmpty());
  EXPECT_EQ(watch_->unseen().without_bytes, 1U);
  EXPECT_THAT(poll({}).samples, IsEmpty()) << "and leaving the list makes it no zero either";
}

TEST_F(ProcessWatchTest, OneNotInProcKeepsItsSeriesAndIsCounted) {
  const Batch first = poll({{77, 5}});
  ASSERT_THAT(first.samples, SizeIs(1));
  EXPECT_EQ(key(first.samples[0]).pid_start_ticks, 0U);
  EXPECT_EQ(watch_->unseen().unresolved, 1U);
  ASSERT_THAT(unseen_warnings(watch_->unseen(), false), SizeIs(1));
  EXPECT_THAT(unseen_warnings(watch_->unseen(), false)[0],
              HasSubstr("1 process that holds GPU memory is not in /proc"));
  EXPECT_THAT(poll({}).events, SizeIs(1));
  EXPECT_EQ(watch_->unseen().unresolved, 0U);
  EXPECT_THAT(unseen_warnings(watch_->unseen(), false), IsEmpty());
}

TEST_F(ProcessWatchTest, LibrariesThatLoadLateAreFoundLater) {
  start(10, 500, "python");
  poll({{10, 100}});
  EXPECT_EQ(catalog_.process(10, 500)->framework, "");
  map(10, "/x/site-packages/torch/lib/libtorch_cuda.so");
  poll({{10, 100}}, 5);
  EXPECT_EQ(catalog_.process(10, 500)->framework, "") << "not looked at again yet";
  poll({{10, 100}}, 5);
  EXPECT_EQ(catalog_.process(10, 500)->framework, "PyTorch");
  // A more specific one that appears later takes precedence.
  map(10, "/x/site-packages/vllm/_C.abi3.so");
  poll({{10, 100}}, 60);
  EXPECT_EQ(catalog_.process(10, 500)->framework, "vLLM");
  // Known information is not lost when a later poll has less.
  map(10, "/lib/libc.so.6");
  poll({{10, 100}}, 300);
  EXPECT_EQ(catalog_.process(10, 500)->framework, "vLLM");
}

TEST_F(ProcessWatchTest, OneProcessOnTwoDevicesIsTwoSeriesOneIdentity) {
  start(10, 500);
  const std::size_t other = watch_->device("GPU-b");
  EXPECT_EQ(watch_->device("GPU-a"), gpu_);
  now_ += from_seconds(1);
  watch_->begin(now_);
  watch_->listed(gpu_, 10, 1, "C");
  watch_->listed(other, 10, 2, "C");
  Batch batch;
  watch_->end(batch);
  EXPECT_THAT(batch.samples, SizeIs(2));
  EXPECT_EQ(catalog_.processes().size(), 1U);
}

TEST_F(ProcessWatchTest, TheOrderOfTheDriversListDoesNotMatter) {
  const std::vector<std::uint32_t> pids = {4100, 7, 90001, 12, 300, 65536, 8};
  const std::vector<std::uint32_t> ascending = {7, 8, 12, 300, 4100, 65536, 90001};
  const std::size_t other = watch_->device("GPU-b");
  const auto poll_both = [&](const std::vector<std::uint32_t>& listed) {
    now_ += from_seconds(1);
    watch_->begin(now_);
    for (const std::size_t device : {other, gpu_})
      for (const std::uint32_t pid : listed) watch_->listed(device, pid, pid, "C");
    Batch batch;
    watch_->end(batch);
    return batch;
  };
  for (const std::uint32_t pid : pids) start(pid, 500);
  const Batch first = poll_both(pids);
  ASSERT_THAT(first.samples, SizeIs(14));
  for (std::size_t i = 0; i < 14; ++i) {
    EXPECT_EQ(key(first.samples[i]).pid, ascending[i / 2]);
    EXPECT_EQ(key(first.samples[i]).device_id, i % 2 == 0 ? "GPU-a" : "GPU-b");
  }
  // Four have ended, two of them with a pid that is reused.
  for (const std::uint32_t pid : {300U, 65536U}) stop(pid);
  for (const std::uint32_t pid : {90001U, 8U}) start(pid, 900);
  const Batch second = poll_both({90001, 8, 7});
  std::vector<std::uint32_t> ended;
  for (const Event& event : second.events) ended.push_back(event.pid);
  EXPECT_EQ(ended, (std::vector<std::uint32_t>{8, 300, 65536, 90001}));
}

TEST_F(ProcessWatchTest, ProcessesWithoutBytesThatComeAndGoLeaveNothing) {
  for (std::uint32_t pid = 10; pid < 60; ++pid) {
    start(pid, 500);
    poll({{pid, std::nullopt}});
    EXPECT_NE(catalog_.process(pid, 500), nullptr);
    if (pid % 2 == 0) {  // its pid is reused
      start(pid, 900);
      poll({{pid, std::nullopt}});
    }
    stop(pid);
  }
  poll({});
  EXPECT_EQ(catalog_.live(), 0U);
  EXPECT_THAT(catalog_.processes(), IsEmpty());
  // The engine retires one that had a sample.
  start(10, 500);
  poll({{10, 100}});
  stop(10);
  poll({});
  EXPECT_EQ(catalog_.live(), 1U);
}

TEST(UnseenWarnings, SayCountsAndWhatToDo) {
  const auto warnings = unseen_warnings({.unresolved = 2, .maps_denied = 12, .without_bytes = 1}, true);
  ASSERT_THAT(warnings, SizeIs(3));
  EXPECT_EQ(warnings[1],
            "maps of 12 processes of other users are not readable: framework unknown; run as root or with "
            "CAP_SYS_PTRACE");
}

}  // namespace
}  // namespace vramtrack

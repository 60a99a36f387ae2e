// The activity of a living worker that distinguishes it from one that waits in vain, from the kernel's counters.
#include "host/life_watch.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

/// The kernel's counters for a process with one thread, and for the driver's thread if it has one.
struct Counted {
  int pid = 77;
  int parent = 1;
  char state = 'S';
  double ran_s = 0;
  double queued_s = 0;
  int turns = 0;
  int page_faults = 0;
  int read_calls = 0;
  std::string waits = fmt::format("{} 0x3 0x7f00 0x10 0x0 0x0 0x0 0x7ffc 0x7fea\n", SYS_read);
  std::string waits_in;  ///< the kernel's function
  bool has_thread_of_driver = false;
};

using ::testing::HasSubstr;

class LifeWatchTest : public ::testing::Test {
 protected:
  void write(const Counted& c) const {
    const std::string folder = proc.file(std::to_string(c.pid));
    const auto thread = [&](int tid, const char* name, char state, const std::string& schedstat,
                            const std::string& waits) {
      const std::string task = fmt::format("{}/task/{}/", folder, tid);
      std::filesystem::create_directories(task);
      std::ofstream(task + "comm") << name << '\n';
      std::ofstream(task + "stat") << fmt::format("{} ({}) {} {} 1 1 0 -1 0 {} 0 0 0 {:.0f} 0 0 0 20 0 1 0 {} 0 0\n",
                                                  tid, name, state, c.parent, c.page_faults, c.ran_s * 100, c.pid);
      std::ofstream(task + "schedstat") << schedstat;
      std::ofstream(task + "syscall") << waits;
    };
    thread(c.pid, "python", c.state, fmt::format("{:.0f} {:.0f} {}\n", c.ran_s * 1e9, c.queued_s * 1e9, c.turns),
           c.waits);
    std::filesystem::copy(fmt::format("{}/task/{}/stat", folder, c.pid), folder + "/stat",
                          std::filesystem::copy_options::overwrite_existing);
    std::ofstream(folder + "/io") << "rchar: 5\nwchar: 5\nsyscr: " << c.read_calls
                                  << "\ncancelled_write_bytes: " << c.turns << '\n';
    std::ofstream(folder + "/wchan") << c.waits_in;
    if (c.has_thread_of_driver)
      thread(c.pid + 1000, "cuda-EvtHandlr", 'S', fmt::format("1000 0 {:.0f}\n", up_s),
             fmt::format("{} 0x7f00 0x2 0x7f10 0x0 0x0 0x0 0x7ffc 0x7fea\n", SYS_ppoll));
  }
  /// Polls once per second, after `at(second)`. Returns the sign of the first worker.
  std::string watch(int seconds, const std::function<void(int)>& at, std::vector<int> workers = {77}) {
    std::ofstream(proc.file("uptime")) << up_s << " 0\n";
    at(0);
    std::vector<ProcessKey> keys;
    for (const int pid : workers)
      keys.push_back({static_cast<std::uint32_t>(pid), static_cast<std::uint64_t>(pid), {}});
    LifeWatch of(proc.path(), keys);
    of.look();
    for (int second = 1; second <= seconds; ++second) {
      std::ofstream(proc.file("uptime")) << ++up_s << " 0\n";
      at(second);
      of.look();
    }
    is_decided = of.is_decided();
    return of.sign_of(0);
  }

  TempFolder proc;
  double up_s = 1000;
  bool is_decided = false;
};

TEST_F(LifeWatchTest, WhatSpinsShowsNothing) {
  EXPECT_EQ(watch(65, [&](int s) { write({.state = 'R', .ran_s = s * 0.99, .turns = 300 * s, .waits = "running\n"}); }),
            "");
  EXPECT_FALSE(is_decided);
}

TEST_F(LifeWatchTest, WhatSpinsOnABusyMachineShowsNothing) {
  EXPECT_EQ(watch(65, [&](int s) { write({.state = 'R', .ran_s = s * 0.3, .queued_s = s * 0.69, .turns = 100 * s}); }),
            "");
}

TEST_F(LifeWatchTest, WhatComputesAndWaitsInTurnsIsInUse) {
  const auto works = [&](int s) { write({.ran_s = s * 0.25, .turns = 20 * s}); };
  EXPECT_EQ(watch(2, works), "") << "it may have happened by chance";
  EXPECT_EQ(watch(3, works), "it alternated between computing and waiting");
  EXPECT_TRUE(is_decided);
}

TEST_F(LifeWatchTest, WhatOnlyLooksAroundIsNot) {
  EXPECT_EQ(watch(65, [&](int s) { write({.ran_s = s * 0.2, .turns = 2000 * s}); }), "");
}

TEST_F(LifeWatchTest, WhatSleepsAndLooksForWorkNowAndThenIsInUse) {
  const auto wakes = [&](double per_s, const char* waits_in) {
    return watch(65, [&, per_s](int s) { write({.turns = static_cast<int>(s * per_s), .waits_in = waits_in}); });
  };
  EXPECT_THAT(wakes(0.1, "hrtimer_nanosleep"), HasSubstr("sleeping and polling"));
  EXPECT_EQ(wakes(5, "hrtimer_nanosleep"), "") << "as a loop does that waits for its program";
  EXPECT_EQ(wakes(0.2, "futex_do_wait"), "") << "as for a queue, with a limit of 5 s";
  EXPECT_EQ(wakes(0.02, "hrtimer_nanosleep"), "");
}

TEST_F(LifeWatchTest, WhatReadsOrTriesToIsInUse) {
  EXPECT_EQ(watch(40, [&](int s) { write({.read_calls = s / 40}); }),
            "it, or a process that it started, read or wrote");
}

TEST_F(LifeWatchTest, WhatTakesNewPagesIsInUse) {
  EXPECT_EQ(watch(65, [&](int s) { write({.page_faults = 8 * s}); }), "") << "the kernel moves some by itself";
  EXPECT_EQ(watch(5, [&](int s) { write({.page_faults = 160 * s}); }), "it used more and more of its memory");
}

TEST_F(LifeWatchTest, WhatItStartedIsPartOfItUnlessThatIsAnotherWorker) {
  const auto compiles = [&](int s) {
    write({});
    write({.pid = 78, .parent = 77, .state = 'R', .ran_s = s * 1.0, .turns = 100 * s});
  };
  EXPECT_EQ(watch(3, compiles), "its children computed");
  EXPECT_EQ(watch(65, compiles, {77, 78}), "");
  EXPECT_EQ(watch(2, [&](int s) { s < 2 ? write({}) : write({.pid = 79, .parent = 77}); }), "it started a process");
}

TEST_F(LifeWatchTest, WhatWaitsForOthersWithoutALimitIsDecided) {
  EXPECT_EQ(watch(2, [&](int) { write({.has_thread_of_driver = true}); }), "");
  EXPECT_TRUE(is_decided);
  watch(2, [&](int) {
    write({.waits = fmt::format("{} 0x1 0x1 0x7f 0x0 0x0 0x0 0x7ffc 0x7fea\n", SYS_clock_nanosleep)});
  });
  EXPECT_FALSE(is_decided) << "it may go on by itself";
  std::filesystem::create_directory(proc.file("77/fd"));
  std::filesystem::create_symlink("anon_inode:[timerfd]", proc.file("77/fd/9"));
  watch(2, [&](int) { write({}); });
  EXPECT_FALSE(is_decided) << "a timer may wake it";
}

TEST_F(LifeWatchTest, WhatGetsNoCoreCannotShowAnything) {
  EXPECT_EQ(watch(65, [&](int s) { write({.state = 'R', .queued_s = 1.0 * s}); }), "it got no CPU time");
}

TEST_F(LifeWatchTest, WhatHasEndedIsDecided) {
  EXPECT_EQ(
      watch(3, [&](int s) { s < 2 ? write({.state = 'R'}) : void(std::filesystem::remove_all(proc.file("77"))); }), "");
  EXPECT_TRUE(is_decided);
}

}  // namespace
}  // namespace vramtrack

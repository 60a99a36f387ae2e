// A recorder is killed with SIGKILL at random points, a hundred times over one file. After each kill, every sample that
// it had reported as flushed must be there, exactly and in order, and no more than the unflushed seconds may be gone.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <random>

#include "store_fixture.hpp"

namespace vramtrack {
namespace {

using namespace testing;
using ::testing::IsEmpty;

constexpr int kSeries = 5;
constexpr std::int64_t kTicksPerSecond = 10;
constexpr double kFlushSeconds = 5;

/// Tick n of the single recording that all recorders continue, so that the parent knows every value.
std::int64_t tick_ns(std::int64_t n) {
  return kStart + n * kSecond / kTicksPerSecond;
}
bool present(std::int64_t n, int series) {
  return series < 3 || n % 7 != series;
}
std::uint64_t value(std::int64_t n, int series) {
  return series == 0 ? 7U << 21 : static_cast<std::uint64_t>(n * n + series) << (series * 4);
}

struct Progress {
  std::int64_t appended = -1, flushed = -1;
};

/// Appends from tick `first` on until it is killed; reports its progress after each call.
[[noreturn]] void record(const StoreConfig& config, std::int64_t first, int to_parent) {
  Catalog catalog;
  std::vector<SeriesId> ids;
  for (int s = 0; s < kSeries; ++s) ids.push_back(catalog.intern(device_key(s)));
  auto store = Store::open(config, catalog, at_s(0));
  if (!store) ::_exit(1);
  Progress progress{first - 1, first - 1};
  Batch batch;
  for (std::int64_t n = first;; ++n) {
    batch.clear();
    for (int s = 0; s < kSeries; ++s)
      if (present(n, s)) batch.samples.push_back({at_ns(tick_ns(n)), ids[static_cast<std::size_t>(s)], value(n, s)});
    if (!(*store)->append(batch)) ::_exit(2);
    progress.appended = n;
    if (n % 1013 == 0) {
      if (!(*store)->flush()) ::_exit(3);
      progress.flushed = n;
    }
    if (::write(to_parent, &progress, sizeof progress) != sizeof progress) ::_exit(4);
  }
}

/// Checks the ticks from `first` on; returns the last tick that is there, or -1 after a failure.
std::int64_t verify(const std::string& path, std::int64_t first) {
  const Scan seen = scan(path, {at_ns(tick_ns(first)), {}});
  EXPECT_THAT(seen.errors, IsEmpty());
  const std::int64_t ticks = static_cast<std::int64_t>(seen.of(device_key(0)).size());
  for (int s = 0; s < kSeries; ++s) {
    std::vector<std::pair<std::int64_t, std::uint64_t>> expected;
    for (std::int64_t n = first; n < first + ticks; ++n)
      if (present(n, s)) expected.emplace_back(tick_ns(n), value(n, s));
    if (seen.of(device_key(s)) != expected) {
      ADD_FAILURE() << "series " << s << " from tick " << first;
      return -1;
    }
  }
  return first + ticks - 1;
}

TEST(StoreCrash, AHundredKillsLoseNoCommittedSample) {
  TempFolder folder;
  StoreConfig config;
  config.path = folder.file("vramtrack.db");
  config.flush_seconds = kFlushSeconds;
  config.raw_hours = config.minute_days = 1e9;
  std::mt19937 random(20260101);
  std::int64_t next = 0;  // first tick that is not in the file
  std::int64_t kills_in_writing = 0;
  for (int kill = 0; kill < 100; ++kill) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe_ends[0]);
      record(config, next, pipe_ends[1]);
    }
    ::close(pipe_ends[1]);
    // The kill comes a random time after the recorder has taken a random number of ticks; in a quarter of the rounds,
    // from the very start, so that opening and creating are covered too.
    Progress progress{next - 1, next - 1};
    const std::int64_t run_to =
        next + (kill % 4 == 0 ? 0 : std::uniform_int_distribution<std::int64_t>(1, 12000)(random));
    while (progress.appended < run_to && ::read(pipe_ends[0], &progress, sizeof progress) == sizeof progress) {
    }
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::microseconds(std::uniform_int_distribution<int>(0, 3000)(random));
    while (std::chrono::steady_clock::now() < until) {
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the recorder ended by itself: " << WEXITSTATUS(status);
    Progress later;
    while (::read(pipe_ends[0], &later, sizeof later) == sizeof later) progress = later;
    ::close(pipe_ends[0]);

    if (progress.appended < 0) continue;  // killed before the file was a store
    const std::int64_t last = verify(config.path, next);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "after kill " << kill;
    EXPECT_GE(last, progress.flushed) << "a flushed sample is gone after kill " << kill;
    EXPECT_LE(progress.appended - last, kTicksPerSecond * static_cast<std::int64_t>(kFlushSeconds)) << "kill " << kill;
    kills_in_writing += last > progress.appended;  // committed, and killed before it could report that
    next = std::max(next, last + 1);
  }
  RecordProperty("kills between commit and report", static_cast<int>(kills_in_writing));
  EXPECT_GT(next, 100'000);  // many blocks were packed meanwhile

  // Over all hundred runs: every tick occurs once, in the samples and in the rollups.
  EXPECT_EQ(verify(config.path, 0), next - 1);
  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  for (int s = 0; s < kSeries; ++s)
    for (const Resolution resolution : {Resolution::minute, Resolution::hour}) {
      const auto rollups = (*reader)->rollups(device_key(s), resolution);
      ASSERT_TRUE(rollups);
      std::uint64_t counted = 0, expected = 0;
      for (const Rollup& rollup : *rollups) counted += rollup.count;
      for (std::int64_t n = 0; n < next; ++n) expected += present(n, s);
      EXPECT_EQ(counted, expected);
    }
}

}  // namespace
}  // namespace vramtrack

#include "engine/remainder.hpp"

#include <gtest/gtest.h>

#include <random>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

constexpr SeriesId kServer{1};
constexpr SeriesId kJob{2};
constexpr double kRelease_s = 60;

/// One device with a remainder of `rest`, read and listed as each test requires.
struct Bench {
  Remainder remainder;
  std::optional<std::uint64_t> both(double t, std::uint64_t used, std::uint64_t server, std::uint64_t job = 0) {
    remainder.read(at(t), used);
    remainder.list(kServer, at(t), server);
    if (job > 0) remainder.list(kJob, at(t), job);
    return remainder.close(at(t));
  }
};

TEST(Remainder, PartsAndRemainderMakeTheDevice) {
  Bench b;
  for (int t = 0; t < 100; ++t) EXPECT_EQ(b.both(t, 9 * kGiB + 300 * kMiB, 5 * kGiB, 4 * kGiB), 300 * kMiB) << t;
}

TEST(Remainder, IsNotKnownWithoutAListing) {
  Bench b;
  for (int t = 0; t < 10; ++t) {
    b.remainder.read(at(t), 4 * kGiB);
    EXPECT_EQ(b.remainder.close(at(t)), std::nullopt);
    EXPECT_FALSE(b.remainder.known(at(t)));
  }
}

TEST(Remainder, GrowthOfTheDriverIsSeenWhileNeighboursSwing) {
  Bench b;
  std::uint64_t rest = 0;
  for (int t = 0; t < 600; ++t) {
    rest = 300 * kMiB + static_cast<std::uint64_t>(t) * kMiB;
    const std::uint64_t swing = 2 * kGiB + static_cast<std::uint64_t>(t % 40) * 100 * kMiB;
    const auto seen = b.both(t, rest + swing, swing);
    ASSERT_TRUE(seen);
    EXPECT_LE(*seen, rest + 1);
    // It lags by what a neighbour moves from one reading to the next, but not by more.
    if (t > 50) {
      EXPECT_GE(*seen + 110 * kMiB, rest) << t;
    }
  }
}

// The device shows a job's memory one reading before, or after, the list of processes does.
TEST(Remainder, StartsAndEndsThatAreSeenApartDoNotRaiseIt) {
  for (const int lag : {-1, 0, 1}) {
    Bench b;
    const auto job = [](int t) { return t >= 20 && t < 70 ? 3 * kGiB : 0; };
    std::uint64_t listed_before = 0;
    for (int t = 0; t < 120; ++t) {
      const std::uint64_t listed = job(t + lag);
      if (listed == 0 && listed_before > 0) b.remainder.end(kJob, at(t), kRelease_s);
      listed_before = listed;
      const auto seen = b.both(t, 5 * kGiB + 300 * kMiB + job(t), 5 * kGiB, listed);
      ASSERT_TRUE(seen);
      EXPECT_LE(*seen, 300 * kMiB) << "lag " << lag << " at " << t;
      if (t < 10 || t > 80) {
        EXPECT_EQ(*seen, 300 * kMiB) << "lag " << lag << " at " << t;
      }
    }
  }
}

TEST(Remainder, MemoryThatADriverFreesLateIsNotItsOwn) {
  Bench b;
  for (int t = 0; t < 200; ++t) {
    if (t == 50) b.remainder.end(kJob, at(t), kRelease_s);
    // 4 GiB, freed over 40 s.
    const std::uint64_t held = t < 50   ? 4 * kGiB
                               : t < 90 ? 4 * kGiB - static_cast<std::uint64_t>(t - 49) * 100 * kMiB
                                        : 0;
    const auto seen = b.both(t, 5 * kGiB + 300 * kMiB + held, 5 * kGiB, t < 50 ? 4 * kGiB : 0);
    ASSERT_TRUE(seen);
    EXPECT_EQ(*seen, 300 * kMiB) << t;
  }
}

TEST(Remainder, MemoryThatIsNeverFreedIsNobodys) {
  Bench b;
  std::optional<std::uint64_t> seen;
  for (int t = 0; t < 200; ++t) {
    if (t == 50) b.remainder.end(kJob, at(t), kRelease_s);
    seen = b.both(t, 9 * kGiB + 300 * kMiB, 5 * kGiB, t < 50 ? 4 * kGiB : 0);
  }
  EXPECT_EQ(seen, 4 * kGiB + 300 * kMiB);
}

/// A job of `held` bytes ends at 50 s; `used(t)` of its memory stays in use at t seconds.
template <class Used>
std::vector<Remainder::Unreleased> after_end(Used used, int until = 200, std::uint64_t held = 4 * kGiB) {
  Bench b;
  for (int t = 0; t < until; ++t) {
    if (t == 50) b.remainder.end(kJob, at(t), kRelease_s);
    b.both(t, 5 * kGiB + 300 * kMiB + (t < 50 ? held : used(t)), 5 * kGiB, t < 50 ? held : 0);
  }
  return b.remainder.unreleased();
}

TEST(Remainder, MemoryThatStaysIsUnreleasedOnceItWasDue) {
  const auto stays = [](int) { return 4 * kGiB; };
  EXPECT_TRUE(after_end(stays, 112).empty()) << "due at 110 s, and to be seen twice";
  const auto found = after_end(stays, 113);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].process, kJob);
  EXPECT_EQ(found[0].ended, at(50));
  EXPECT_EQ(found[0].held_bytes, 4 * kGiB);
  EXPECT_FALSE(found[0].is_one_of_several);
  EXPECT_EQ(after_end(stays, 4000).size(), 1U);
  EXPECT_EQ(after_end(stays, 4000).front().bytes, 4 * kGiB);
}

TEST(Remainder, MemoryThatIsFreedLateOrForTheLargerPartIsReleased) {
  EXPECT_TRUE(after_end([](int) { return std::uint64_t{0}; }).empty());
  EXPECT_TRUE(after_end([](int t) { return t < 105 ? 4 * kGiB : 0; }).empty());
  EXPECT_TRUE(after_end([](int) { return 4 * kGiB / 2 - kMiB; }).empty());
  EXPECT_EQ(after_end([](int) { return 4 * kGiB / 2 + kMiB; }).size(), 1U);
}

TEST(Remainder, MemoryThatComesBackAfterAllIsReleased) {
  const auto until = [](int end, std::uint64_t rest) { return [=](int t) { return t < end ? 4 * kGiB : rest; }; };
  EXPECT_EQ(after_end(until(300, 0), 300).size(), 1U);
  EXPECT_TRUE(after_end(until(300, 0), 310).empty());
  EXPECT_TRUE(after_end(until(300, kGiB), 310).empty()) << "most of it";
  EXPECT_EQ(after_end(until(300, 3 * kGiB), 310).front().bytes, 3 * kGiB);
}

TEST(Remainder, OfProcessesThatEndTogetherNobodyKnowsWhichHeldIt) {
  Bench b;
  for (int t = 0; t < 200; ++t) {
    if (t == 50) b.remainder.end(kJob, at(t), kRelease_s);
    if (t == 55) b.remainder.end(kServer, at(t), kRelease_s);
    const std::uint64_t used = t < 50 ? 9 * kGiB : t < 55 ? 9 * kGiB : 4 * kGiB;  // the job's, or most of the server's
    b.remainder.read(at(t), used);
    if (t < 55) b.remainder.list(kServer, at(t), 5 * kGiB);
    if (t < 50) b.remainder.list(kJob, at(t), 4 * kGiB);
    b.remainder.close(at(t));
  }
  const auto found = b.remainder.unreleased();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].bytes, 4 * kGiB);
  EXPECT_TRUE(found[0].is_one_of_several);
}

TEST(Remainder, WithoutReadingsNothingIsOverdue) {
  Bench b;
  for (int t = 0; t < 50; ++t) b.both(t, 9 * kGiB, 5 * kGiB, 4 * kGiB);
  b.remainder.end(kJob, at(50), kRelease_s);
  for (int t = 400; t < 410; ++t) b.both(t, 9 * kGiB, 5 * kGiB);
  EXPECT_TRUE(b.remainder.unreleased().empty()) << "whoever holds it may have come meanwhile";
}

TEST(Remainder, AProcessThatIsMissedForAReadingMakesNoSample) {
  Bench b;
  for (int t = 0; t < 60; ++t) {
    const bool missed = t % 10 == 5;
    b.remainder.read(at(t), 9 * kGiB);
    b.remainder.list(kServer, at(t), 5 * kGiB);
    if (!missed) b.remainder.list(kJob, at(t), 4 * kGiB);
    EXPECT_EQ(b.remainder.close(at(t)).has_value(), !missed) << t;
    EXPECT_TRUE(b.remainder.known(at(t)));
  }
}

TEST(Remainder, IsNotKnownAnyMoreWhenTheListingsEnd) {
  Bench b;
  for (int t = 0; t < 60; ++t) b.both(t, 9 * kGiB, 5 * kGiB);
  for (int t = 60; t < 80; ++t) {
    b.remainder.read(at(t), 9 * kGiB);
    EXPECT_EQ(b.remainder.close(at(t)), std::nullopt);
  }
  EXPECT_FALSE(b.remainder.known(at(80)));
}

TEST(Remainder, SharedMemoryThatIsCountedTwiceLeavesNothing) {
  Bench b;
  for (int t = 0; t < 60; ++t) EXPECT_EQ(b.both(t, 6 * kGiB, 4 * kGiB, 4 * kGiB), 0U);
}

TEST(Remainder, AfterTheLastEndAllIsNobodys) {
  Bench b;
  for (int t = 0; t < 10; ++t) b.both(t, 5 * kGiB + 300 * kMiB, 5 * kGiB);
  b.remainder.end(kServer, at(10), kRelease_s);
  for (int t = 10; t < 200; ++t) {
    b.remainder.read(at(t), 300 * kMiB);
    EXPECT_EQ(b.remainder.close(at(t)), 300 * kMiB);
  }
  EXPECT_TRUE(b.remainder.known(at(200)));
}

// Thousands of jobs that come and go, listed in their own log: in any order, the remainder does not rise.
TEST(Remainder, ChurnNeverRaisesIt) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; };
    const double phase = seed % 3 * 0.3;  // 0: at the same instants
    const int every = 1 + static_cast<int>(seed % 4);
    Remainder remainder;
    std::map<std::uint32_t, std::uint64_t> living;
    std::map<std::uint32_t, std::uint64_t> listed;
    std::uint32_t next = 10;
    const std::uint64_t rest = 400 * kMiB;
    std::uint64_t highest = 0;
    for (int t = 0; t < 4000; ++t) {
      if (chance(0.05)) living[next++] = (1 + random() % 2000) * kMiB;
      if (!living.empty() && chance(0.05)) living.erase(living.begin());
      for (auto& [id, bytes] : living) bytes += chance(0.2) ? 10 * kMiB : 0;
      std::uint64_t sum = 0;
      for (const auto& [id, bytes] : living) sum += bytes;
      remainder.read(at(t), rest + sum);
      if (phase > 0) {
        if (const auto seen = remainder.close(at(t))) highest = std::max(highest, *seen);
      }
      if (t % every == 0) {
        const Timestamp now = at(t + phase);
        for (const auto& [id, bytes] : listed)
          if (!living.contains(id)) remainder.end(static_cast<SeriesId>(id), now, kRelease_s);
        listed = living;
        for (const auto& [id, bytes] : living) remainder.list(static_cast<SeriesId>(id), now, bytes);
      }
      if (const auto seen = remainder.close(at(t + phase))) highest = std::max(highest, *seen);
      ASSERT_TRUE(remainder.unreleased().empty()) << "seed " << seed << ", " << t << " s";
    }
    EXPECT_LE(highest, rest + kMiB) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vramtrack

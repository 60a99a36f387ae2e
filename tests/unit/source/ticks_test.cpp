#include "source/ticks.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../at.hpp"

namespace vramtrack {
namespace {

Sample sample(int s, std::uint64_t bytes) {
  return {at(s), SeriesId{0}, bytes};
}

Event event(int s) {
  Event e;
  e.time = at(s);
  return e;
}

struct Taken {
  std::vector<std::pair<int, std::size_t>> ticks;  ///< second, samples
  std::size_t events = 0;
  Ticks::Take take(std::size_t most = SIZE_MAX) {
    return [this, most](const Batch& tick, Timestamp time) {
      ticks.emplace_back(static_cast<int>(seconds_between(Timestamp{}, time)), tick.samples.size());
      events += tick.events.size();
      return ticks.size() < most;
    };
  }
};

using Pairs = std::vector<std::pair<int, std::size_t>>;

TEST(Ticks, SamplesOfOneInstantAreOneTickHoweverTheyAreCut) {
  Ticks ticks;
  Taken taken;
  EXPECT_TRUE(ticks.add({{sample(1, 1), sample(1, 2), sample(2, 3)}, {}, {}}, taken.take()));
  EXPECT_EQ(taken.ticks, (Pairs{{1, 2}}));  // second 2 may continue in the next batch
  EXPECT_TRUE(ticks.add({{sample(2, 4), sample(3, 5)}, {}, {}}, taken.take()));
  EXPECT_TRUE(ticks.finish(taken.take()));
  EXPECT_EQ(taken.ticks, (Pairs{{1, 2}, {2, 2}, {3, 1}}));
}

TEST(Ticks, AnInstantOfAnySizeIsHandedOverInParts) {
  Ticks ticks;
  Taken taken;
  Batch batch;
  for (int part = 0; part < 10; ++part) {
    batch.clear();
    for (int i = 0; i < 10'000; ++i) {
      batch.samples.push_back(sample(7, 1));
      batch.events.push_back(event(7));
      if (i % 2 == 0) batch.events.push_back(event(7));
    }
    EXPECT_TRUE(ticks.add(batch, taken.take()));
  }
  EXPECT_TRUE(ticks.finish(taken.take()));
  std::size_t samples = 0;
  for (const auto& [second, count] : taken.ticks) {
    EXPECT_EQ(second, 7);
    EXPECT_LE(count, Ticks::kMostOfATick);
    samples += count;
  }
  EXPECT_EQ(samples, 100'000U);
  EXPECT_EQ(taken.events, 150'000U);
  EXPECT_GE(taken.ticks.size(), 2U);
}

TEST(Ticks, EventsGoWithTheTickThatSeesThem) {
  Ticks ticks;
  Taken taken;
  ticks.add({{sample(1, 1), sample(5, 2)}, {event(3), event(9)}, {}}, taken.take());
  EXPECT_EQ(taken.ticks, (Pairs{{1, 1}, {5, 1}, {9, 0}}));
  EXPECT_EQ(taken.events, 2U);
}

TEST(Ticks, ReadingsGoWithTheirTick) {
  Ticks ticks;
  std::vector<std::pair<std::size_t, std::size_t>> taken;
  const auto take = [&](const Batch& tick, Timestamp) {
    taken.emplace_back(tick.readings.size(), tick.loads.size());
    return true;
  };
  DeviceReading reading;
  Batch batch;
  for (const int s : {1, 2}) {
    batch.samples.push_back(sample(s, 1));
    reading.time = at(s);
    batch.readings.push_back(reading);
    batch.loads.push_back({at(s), SeriesId{0}, {}});
  }
  batch.loads.push_back({at(2), SeriesId{0}, {}});
  ticks.add(batch, take);
  ticks.finish(take);
  EXPECT_EQ(taken, (std::vector<std::pair<std::size_t, std::size_t>>{{1, 1}, {1, 2}}));
}

TEST(Ticks, StopsWhenToldTo) {
  Ticks ticks;
  Taken taken;
  EXPECT_FALSE(ticks.add({{sample(1, 1), sample(2, 1), sample(3, 1)}, {}, {}}, taken.take(1)));
  EXPECT_EQ(taken.ticks.size(), 1U);
}

TEST(Ticks, NothingIsNoTick) {
  Ticks ticks;
  Taken taken;
  EXPECT_TRUE(ticks.add({}, taken.take()));
  EXPECT_TRUE(ticks.finish(taken.take()));
  EXPECT_TRUE(taken.ticks.empty());
}

TEST(TicksProperty, NothingIsLostAndCutsDoNotMatter) {
  const bool ok = rc::check([](std::vector<std::uint8_t> steps, std::uint8_t cut) {
    std::vector<Sample> samples;
    int time = 0;
    for (const std::uint8_t step : steps) samples.push_back(sample(time += step % 3, step));
    const std::size_t size = 1 + cut % 5U;
    Ticks whole;
    Ticks pieces;
    Taken one;
    Taken many;
    whole.add({samples, {}, {}}, one.take());
    whole.finish(one.take());
    for (std::size_t i = 0; i < samples.size(); i += size) {
      const auto from = samples.begin() + static_cast<std::ptrdiff_t>(i);
      const auto to = samples.begin() + static_cast<std::ptrdiff_t>(std::min(i + size, samples.size()));
      pieces.add({{from, to}, {}, {}}, many.take());
    }
    pieces.finish(many.take());
    RC_ASSERT(one.ticks == many.ticks);
    std::size_t total = 0;
    for (const auto& tick : one.ticks) total += tick.second;
    RC_ASSERT(total == samples.size());
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace vramtrack

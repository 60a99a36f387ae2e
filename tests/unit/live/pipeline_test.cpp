#include "live/pipeline.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

Batch reading(SeriesId series, double second, std::uint64_t bytes) {
  Batch batch;
  batch.samples.push_back({Timestamp{} + std::chrono::hours(24) + from_seconds(second), series, bytes});
  return batch;
}

TEST(Pipeline, AViewIsMadeOnceBetweenTwoBatches) {
  Catalog catalog;
  SeriesKey key;
  key.metric = Metric::device_used;
  key.device_id = "GPU-1";
  const SeriesId series = catalog.intern(key);
  Pipeline pipeline({}, catalog);
  pipeline.take(reading(series, 0, 100));
  const auto first = pipeline.view();
  EXPECT_EQ(pipeline.view(), first) << "the next who asks";
  EXPECT_NE(pipeline.view(true), first) << "one that explains has more in it";
  pipeline.take(reading(series, 1, 200));
  const auto second = pipeline.view();
  ASSERT_NE(second, first);
  EXPECT_EQ(second->series.at(0).used_bytes, 200U);
  pipeline.begin_anew(second->time);
  EXPECT_TRUE(pipeline.view()->series.empty());
}

}  // namespace
}  // namespace vramtrack

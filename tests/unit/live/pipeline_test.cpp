#include "live/pipeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "../temp_folder.hpp"

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

/// While it lives, no file of this process can grow.
class NoFileGrows {
 public:
  NoFileGrows() {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoFileGrows() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  NoFileGrows(const NoFileGrows&) = delete;
  NoFileGrows& operator=(const NoFileGrows&) = delete;

 private:
  rlimit before_{};
};

TEST(Pipeline, AViewWarnsWhileNothingCanBeRecordedAndOfItsSources) {
  const TempFolder folder;
  Catalog catalog;
  SeriesKey key;
  key.metric = Metric::device_used;
  key.device_id = "GPU-1";
  const SeriesId series = catalog.intern(key);
  StoreConfig config;
  config.path = folder.file("store.db");
  auto store = Store::open(config, catalog, Timestamp{});
  ASSERT_TRUE(store) << store.error().message;
  Pipeline pipeline({}, catalog);
  pipeline.record_into(std::move(*store), Timestamp{} + std::chrono::hours(24));
  pipeline.take(reading(series, 0, 100));
  EXPECT_TRUE(pipeline.view()->warnings.empty());
  {
    const NoFileGrows full;
    for (int i = 1; i < 200; ++i) pipeline.take(reading(series, i, 100));
    ASSERT_EQ(pipeline.view()->warnings.size(), 1U);
    EXPECT_THAT(pipeline.view()->warnings.front(), testing::StartsWith("not recording: "));
  }
  for (int i = 200; i < 400; ++i) pipeline.take(reading(series, i, 100));
  EXPECT_TRUE(pipeline.view()->warnings.empty()) << "it is written again";
  pipeline.set_source_warnings({"nvml: the driver does not answer"});
  pipeline.take(reading(series, 400, 100));
  EXPECT_THAT(pipeline.view()->warnings, testing::ElementsAre("nvml: the driver does not answer"));
}

}  // namespace
}  // namespace vramtrack

// Charts from a store: all of it, at any resolution, beside its writer.
#include "top/store_history.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "../temp_folder.hpp"
#include "core/units.hpp"

namespace vramtrack::top {
namespace {

const Timestamp kStart{std::chrono::seconds{1767225600}};  // 2026-01-01

class StoreHistoryTest : public testing::Test {
 protected:
  StoreHistoryTest() { config_.path = folder_.file("vramtrack.db"); }

  /// `hours` of a ramp of 1 MiB per sample, every 10 s.
  void write(int hours) {
    Catalog catalog;
    const SeriesId id = catalog.intern(key_);
    auto store = Store::open(config_, catalog, kStart);
    ASSERT_TRUE(store) << store.error().message;
    Batch batch;
    for (int i = 0; i < hours * 360; ++i) {
      batch.clear();
      batch.samples.push_back({kStart + std::chrono::seconds{10} * i, id, static_cast<std::uint64_t>(i * kMiB)});
      ASSERT_TRUE((*store)->append(batch));
    }
    ASSERT_TRUE((*store)->flush());
  }

  TempFolder folder_;
  StoreConfig config_;
  const SeriesKey key_{Metric::device_used, "GPU-0", 0, 0};
};

TEST_F(StoreHistoryTest, ShowsTheWholeRecordingAndAnyPartOfIt) {
  write(12);
  auto history = StoreHistory::open(config_.path);
  ASSERT_TRUE(history) << history.error().message;
  EXPECT_EQ(history->begin(key_), kStart);
  EXPECT_FALSE(history->begin({Metric::device_used, "GPU-9", 0, 0}));
  const Timestamp end = kStart + std::chrono::hours{12};

  const auto all = history->points(key_, kStart, end, 200);
  ASSERT_GT(all.size(), 100U);
  ASSERT_LE(all.size(), 200U);
  EXPECT_EQ(all.front().min_bytes, 0);
  EXPECT_EQ(all.back().max_bytes, (12 * 360 - 1) * kMiB);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GT(all[i].mean_bytes, all[i - 1].mean_bytes);

  // Ten minutes in the middle: every sample in it, and no other.
  const Timestamp from = kStart + std::chrono::hours{5};
  const auto part = history->points(key_, from, from + std::chrono::minutes{10}, 200);
  ASSERT_EQ(part.size(), 60U);
  EXPECT_EQ(part.front().from, from);
  EXPECT_EQ(part.front().mean_bytes, 5 * 360 * kMiB);
  EXPECT_EQ(history->take_error(), "");
}

TEST_F(StoreHistoryTest, NothingOutsideOfTheRangeAndNothingOfOthers) {
  write(2);
  auto history = StoreHistory::open(config_.path);
  ASSERT_TRUE(history);
  EXPECT_TRUE(history->points(key_, kStart - std::chrono::hours{9}, kStart, 100).empty());
  EXPECT_TRUE(history->points(key_, kStart, kStart, 100).empty());
  EXPECT_TRUE(
      history->points({Metric::device_used, "GPU-1", 0, 0}, kStart, kStart + std::chrono::hours{1}, 100).empty());
}

TEST_F(StoreHistoryTest, NoStoreIsAnError) {
  EXPECT_FALSE(StoreHistory::open(folder_.file("none.db")));
}

}  // namespace
}  // namespace vramtrack::top

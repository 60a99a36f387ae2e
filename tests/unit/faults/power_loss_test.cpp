// The power fails at random moments, leaving any part of the unsynced data: sectors in any of their states, in any
// order. The store opens, is intact, has a prefix of the recorded data, and lacks no more than the documents state.
#include <gmock/gmock.h>

#include <iostream>

#include "fault_vfs.hpp"
#include "store_session.hpp"

namespace vramtrack {
namespace {

using namespace testing;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kSecondsPerTick = 1;
constexpr std::int64_t kFlushSeconds = 5;
/// docs/formats/store.md: the log is synced once it has 256 pages, and each flush writes at least one.
constexpr std::int64_t kWindowS = 256 * kFlushSeconds;

std::uint64_t value(std::int64_t tick, int series) {
  return static_cast<std::uint64_t>((tick * 6151 + series) % 99991) << 12U;
}

/// A machine that loses its power again and again.
class Machine {
 public:
  Machine(std::string path, int series) : path_(std::move(path)), series_(series) {}

  /// Records until the power fails, for at most `ticks`.
  void record(FaultVfs& vfs, std::int64_t ticks) {
    Catalog catalog;
    std::vector<SeriesId> ids;
    for (int s = 0; s < series_; ++s) ids.push_back(catalog.intern(device_key(s)));
    StoreConfig config;
    config.path = path_;
    config.raw_hours = config.minute_days = 1e6;
    config.max_size_mb = 0;
    config.flush_seconds = 1e9;
    reported_ = safe_ = next_ - 1;
    // A sync of the log makes everything reported before it safe; so does one of the file, which the log fills.
    vfs.on_sync([this](const std::string&) { safe_ = reported_; });
    auto store = Store::open(config, catalog, at_s(0));
    ASSERT_TRUE(store) << store.error().message;
    Batch batch;
    for (std::int64_t t = 0; t < ticks && !vfs.is_dark(); ++t, ++next_) {
      batch.clear();
      for (int s = 0; s < series_; ++s)
        batch.samples.push_back({at_s(next_ * kSecondsPerTick), ids[static_cast<std::size_t>(s)], value(next_, s)});
      ASSERT_TRUE((*store)->append(batch));
      if (next_ % kFlushSeconds != kFlushSeconds - 1) continue;
      ASSERT_TRUE((*store)->flush());
      if (!vfs.is_dark()) reported_ = next_;
    }
  }

  /// Checks the store after the loss.
  void verify() {
    Scan found = scan(path_);
    if (safe_ < 0 && !found.errors.empty()) {
      // The power failed while the file was created: a reader reports that, and the next writer completes it.
      EXPECT_THAT(found.errors, ElementsAre(AnyOf(HasSubstr("empty, not a vramtrack store"),
                                                  HasSubstr("was cut off while it was written"))));
      Catalog catalog;
      StoreConfig config;
      config.path = path_;
      const auto store = Store::open(config, catalog, at_s(0));
      ASSERT_TRUE(store) << store.error().message;
      found = scan(path_);
    }
    ASSERT_TRUE(found.errors.empty()) << found.errors.front();
    const auto ticks = static_cast<std::int64_t>(found.of(device_key(0)).size());
    for (int s = 0; s < series_; ++s) {
      const auto& samples = found.of(device_key(s));
      ASSERT_EQ(samples.size(), static_cast<std::size_t>(ticks)) << "series " << s;
      for (std::int64_t n = 0; n < ticks; ++n) {
        ASSERT_EQ(samples[static_cast<std::size_t>(n)].first, kStart + n * kSecondsPerTick * kSecond);
        ASSERT_EQ(samples[static_cast<std::size_t>(n)].second, value(n, s));
      }
    }
    EXPECT_GE(ticks - 1, safe_) << "what was synced is gone";
    lost_s_ = std::max<std::int64_t>(lost_s_, (reported_ - (ticks - 1)) * kSecondsPerTick);
    next_ = ticks;
    if (ticks == 0) return;
    check_integrity(path_);
  }

  [[nodiscard]] std::int64_t lost_s() const { return lost_s_; }
  [[nodiscard]] std::int64_t ticks() const { return next_; }

 private:
  std::string path_;
  int series_;
  std::int64_t next_ = 0;
  std::int64_t reported_ = -1;  ///< the last tick that a flush has reported
  std::int64_t safe_ = -1;      ///< the last that was reported before the last sync
  std::int64_t lost_s_ = 0;
};

void lose_power_often(int series, std::int64_t window_s) {
  FaultVfs vfs;
  const int machines = fault_rounds(4);
  std::int64_t lost_s = 0;
  int losses = 0;
  for (int seed = 1; seed <= machines; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed * 64 + series));
    TempFolder folder;
    Machine machine(folder.file("vramtrack.db"), series);
    for (int loss = 0; loss < 6; ++loss, ++losses) {
      SCOPED_TRACE("machine " + std::to_string(seed) + ", loss " + std::to_string(loss));
      // Half of them early, so that creating, opening and closing are covered, too.
      vfs.record(std::uniform_int_distribution<int>(1, loss % 2 == 0 ? 60 : 1500)(random));
      machine.record(vfs, 5000);
      if (!::testing::Test::HasFailure()) vfs.lose_power(random);
      if (!::testing::Test::HasFailure()) machine.verify();
      if (::testing::Test::HasFailure()) return;
    }
    lost_s = std::max(lost_s, machine.lost_s());
  }
  std::cout << "power loss: " << losses << " losses with " << series << " series; at most " << lost_s
            << " s of reported samples were lost\n";
  EXPECT_LE(lost_s, window_s);
}

TEST(PowerLoss, OfASmallMachineLosesAtMostTheWindow) {
  lose_power_often(2, kWindowS);
}

TEST(PowerLoss, OfALargeMachineLosesAtMostTheWindow) {
  lose_power_often(72, kWindowS);
}

}  // namespace
}  // namespace vramtrack

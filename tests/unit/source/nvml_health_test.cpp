// Health through the fake driver: what is reported, what is unknown, and how often it is read.
#include "source/nvml_health.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nvml_fake.hpp"

namespace vramtrack {
namespace {

constexpr std::string_view kHealthy =
    "gpu 0 uuid=GPU-a total=80G used=1G temp=61 throttle=0x4 ecc=1 corrected=3 uncorrected=0 corrected_total=17 "
    "uncorrected_total=1 remapped=2 repair_pending=1 repair_failed=0 retire_pending=0\n";

/// The last health that a batch has for the device.
std::optional<DeviceHealth> health_of(const Batch& batch, const std::string& device = "GPU-a") {
  std::optional<DeviceHealth> found;
  for (const DeviceReading& reading : batch.readings)
    if (reading.device_id == device && reading.health) found = reading.health;
  return found;
}

TEST(NvmlHealth, TellsAllThatTheDriverTells) {
  FakeNvml fake{std::string(kHealthy)};
  const auto health = health_of(fake.poll());
  ASSERT_TRUE(health);
  EXPECT_EQ(health->time, fake.now);
  EXPECT_EQ(health->temperature_celsius, 61);
  EXPECT_EQ(health->ecc_enabled, true);
  EXPECT_EQ(health->ecc_since_load, (EccErrors{3, 0}));
  EXPECT_EQ(health->ecc_lifetime, (EccErrors{17, 1}));
  EXPECT_EQ(health->remapped_rows, 2);
  EXPECT_EQ(health->repair_pending, true);
  EXPECT_EQ(health->repair_failed, false);
  ASSERT_TRUE(health->throttle);
  EXPECT_TRUE(health->throttle->has(Throttle::power_cap));
  EXPECT_FALSE(health->throttle->has(Throttle::thermal_hardware));
  EXPECT_EQ(health->hears_xids, true);
}

TEST(NvmlHealth, WhatADriverLacksIsNotKnown) {
  FakeNvml old(std::string(kHealthy), "v1");
  const auto health = health_of(old.poll());
  ASSERT_TRUE(health);
  EXPECT_EQ(health->temperature_celsius, 61);
  EXPECT_EQ(health->ecc_enabled, std::nullopt);
  EXPECT_EQ(health->ecc_since_load, EccErrors{});
  EXPECT_EQ(health->throttle, std::nullopt);
  EXPECT_EQ(health->repair_pending, std::nullopt);

  FakeNvml middle(std::string(kHealthy), "v2");
  const auto pages = health_of(middle.poll());
  ASSERT_TRUE(pages);
  EXPECT_TRUE(pages->throttle && pages->throttle->has(Throttle::power_cap)) << "by the call's old name";
  EXPECT_EQ(pages->remapped_rows, std::nullopt);
  EXPECT_EQ(pages->repair_pending, false) << "from the retired pages";
}

TEST(NvmlHealth, WhatAGpuDoesNotSupportIsNotKnownAndNoError) {
  FakeNvml fake("gpu 0 uuid=GPU-a total=24G used=1G temp=44\n");
  const auto health = health_of(fake.poll());
  ASSERT_TRUE(health);
  EXPECT_EQ(health->temperature_celsius, 44);
  EXPECT_EQ(health->ecc_enabled, std::nullopt);
  EXPECT_EQ(health->ecc_since_load.uncorrected, std::nullopt);
  EXPECT_EQ(health->throttle, std::nullopt);
  EXPECT_EQ(health->remapped_rows, std::nullopt);
  EXPECT_TRUE(fake.source->notes().warnings.empty());
}

TEST(NvmlHealth, EccThatIsOffHasNoCounts) {
  FakeNvml fake("gpu 0 uuid=GPU-a total=24G used=1G ecc=0 corrected=0 uncorrected=0\n");
  const auto health = health_of(fake.poll());
  ASSERT_TRUE(health);
  EXPECT_EQ(health->ecc_enabled, false);
  EXPECT_EQ(health->ecc_since_load, EccErrors{});
}

TEST(NvmlHealth, AFailedCallIsAskedAgainTheNextTime) {
  FakeNvml fake(fmt::format("{}error call=temperature code=999 from=0 to=5\n", kHealthy));
  EXPECT_EQ(health_of(fake.poll())->temperature_celsius, std::nullopt);
  std::optional<DeviceHealth> later;
  for (int i = 0; i < 10; ++i) later = health_of(fake.poll());
  ASSERT_TRUE(later);
  EXPECT_EQ(later->temperature_celsius, 61);
}

TEST(NvmlHealth, IsReadEveryTenSecondsAndNotByAllGpusAtOnce) {
  FakeNvml fake(fmt::format("{}gpu 1 uuid=GPU-b total=80G used=1G temp=50\n", kHealthy));
  std::vector<int> first;
  std::vector<int> second;
  for (int i = 0; i < 35; ++i) {
    const Batch batch = fake.poll();
    if (health_of(batch)) first.push_back(i);
    if (health_of(batch, "GPU-b")) second.push_back(i);
  }
  EXPECT_THAT(first, testing::ElementsAre(0, 10, 20, 30));
  EXPECT_THAT(second, testing::ElementsAre(0, 11, 21, 31));
  // Setting the clock back must not stop the readings.
  EXPECT_TRUE(health_of(fake.poll(-3600)));
}

TEST(NvmlHealth, ADriverThatGivesNoEventsIsSaidNotToTellXids) {
  FakeNvml fake(std::string(kHealthy) + "error call=events code=3\n");
  EXPECT_EQ(health_of(fake.poll())->hears_xids, false);
}

TEST(NvmlHealth, ReasonsWithoutANameAreOther) {
  const ThrottleSet set = nvml::throttle_set(0x8 | 0x20 | 0x100 | 0x10);
  EXPECT_TRUE(set.has(Throttle::hardware_slowdown));
  EXPECT_TRUE(set.has(Throttle::thermal_software));
  EXPECT_TRUE(set.has(Throttle::other));
  EXPECT_FALSE(set.has(Throttle::idle));
  EXPECT_EQ(nvml::throttle_set(0), ThrottleSet{});
}

}  // namespace
}  // namespace vramtrack

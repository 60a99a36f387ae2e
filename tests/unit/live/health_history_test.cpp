#include "live/health_history.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

class Health : public ::testing::Test {
 protected:
  Health() {
    DeviceInfo device;
    device.id = "GPU-a";
    device.index = 3;
    catalog_.describe(device);
  }
  /// The record of a reading at `t_s`.
  std::string told(double t_s, bool is_hot, std::uint64_t errors = 0) {
    DeviceReading reading;
    reading.time = Timestamp{from_seconds(t_s)};
    reading.device_id = "GPU-a";
    reading.health.emplace();
    reading.health->temperature_celsius = 90;
    reading.health->ecc_since_load.uncorrected = errors;
    reading.health->throttle.emplace();
    if (is_hot) reading.health->throttle->add(Throttle::thermal_hardware);
    Batch batch;
    batch.readings.push_back(reading);
    batch.readings.push_back({});  // one without health provides no information
    history_.add(catalog_, batch);
    EXPECT_LE(batch.events.size(), 1U);
    if (batch.events.empty()) return {};
    EXPECT_EQ(batch.events[0].kind, Event::Kind::note);
    EXPECT_EQ(batch.events[0].device_id, "GPU-a");
    EXPECT_EQ(batch.events[0].time, reading.time);
    return batch.events[0].text;
  }
  Catalog catalog_;
  HealthHistory history_;
};

TEST_F(Health, AChangeThatLastsIsToldOnce) {
  EXPECT_EQ(told(0, false), "");
  EXPECT_EQ(told(10, true), "");
  EXPECT_EQ(told(69, true), "");
  EXPECT_EQ(
      told(70, true),
      "GPU 3: health degraded: too hot: the hardware lowers the clocks at 90 °C; check the fans and the air flow now");
  EXPECT_EQ(told(200, true), "");
  EXPECT_EQ(told(210, false), "");
  EXPECT_EQ(told(270, false), "GPU 3: health healthy");
}

TEST_F(Health, WhatFlickersIsNotTold) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(told(i * 30, i % 2 == 0), "");
}

TEST_F(Health, ErrorsOfTheMemoryAreToldAtOnce) {
  EXPECT_EQ(told(0, false, 1).find("GPU 3: health failing: 1 uncorrected memory error since the driver was loaded; "),
            0U);
  EXPECT_EQ(told(10, false, 1), "");
}

}  // namespace
}  // namespace vramtrack

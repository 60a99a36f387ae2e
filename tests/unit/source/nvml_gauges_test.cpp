// Gauges through the fake driver: temperature, power, fan, and the load of each process.
#include "source/nvml_gauges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nvml_fake.hpp"

namespace vramtrack {
namespace {

using testing::DoubleEq;
using testing::Optional;

/// The gauges in the last reading of the device.
DeviceGauges gauges_of(const Batch& batch, const std::string& device = "GPU-a") {
  DeviceGauges found;
  for (const DeviceReading& reading : batch.readings)
    if (reading.device_id == device) found = reading.gauges;
  return found;
}

std::optional<double> gpu_ratio(const FakeNvml& fake, const Batch& batch, std::uint32_t pid) {
  std::optional<double> found;
  for (const ProcessReading& reading : batch.loads)
    if (fake.catalog.key(reading.series).pid == pid) found = reading.load.gpu_ratio;
  return found;
}

TEST(NvmlGauges, TellWhatTheDriverTells) {
  FakeNvml fake(
      "gpu 0 uuid=GPU-a total=24G used=1G util=87 memutil=41 temp=64 power=312500 power_limit=450000 clock=1980 "
      "fan=46\n");
  const DeviceGauges gauges = gauges_of(fake.poll());
  EXPECT_THAT(gauges.memory_utilisation_ratio, Optional(DoubleEq(0.41)));
  EXPECT_THAT(gauges.temperature_celsius, Optional(DoubleEq(64)));
  EXPECT_THAT(gauges.power_watts, Optional(DoubleEq(312.5)));
  EXPECT_THAT(gauges.power_limit_watts, Optional(DoubleEq(450)));
  EXPECT_THAT(gauges.sm_clock_hertz, Optional(DoubleEq(1.98e9)));
  EXPECT_THAT(gauges.fan_ratio, Optional(DoubleEq(0.46)));
}

TEST(NvmlGauges, WhatIsNotSupportedIsNotKnownAndIsNoZero) {
  FakeNvml fake("gpu 0 uuid=GPU-a total=24G used=1G temp=44\n");
  const DeviceGauges gauges = gauges_of(fake.poll());
  EXPECT_EQ(gauges.temperature_celsius, 44);
  EXPECT_EQ(gauges.power_watts, std::nullopt);
  EXPECT_EQ(gauges.power_limit_watts, std::nullopt);
  EXPECT_EQ(gauges.sm_clock_hertz, std::nullopt);
  EXPECT_EQ(gauges.fan_ratio, std::nullopt);
  EXPECT_EQ(gauges.memory_utilisation_ratio, std::nullopt);
  EXPECT_TRUE(fake.source->notes().warnings.empty());
}

TEST(NvmlGauges, AreReadEveryTwoSecondsHoweverShortTheIntervalIs) {
  FakeNvml fake("gpu 0 uuid=GPU-a total=24G used=1G temp=40,41,42,43,44,45,46,47,48\n");
  std::vector<double> told;
  for (int i = 0; i < 9; ++i) told.push_back(gauges_of(fake.poll(0.5)).temperature_celsius.value_or(-1));
  EXPECT_THAT(told, testing::ElementsAre(40, 40, 40, 40, 44, 44, 44, 44, 48));
  // Setting the clock back must not stop the readings.
  EXPECT_EQ(gauges_of(fake.poll(-3600)).temperature_celsius, 48);
}

std::vector<std::uint64_t> received(const FakeNvml& fake, const Batch& batch) {
  std::vector<std::uint64_t> found;
  for (const Sample& sample : batch.samples)
    if (fake.catalog.key(sample.series).metric == Metric::device_received) found.push_back(sample.bytes);
  return found;
}

TEST(NvmlGauges, WhatIsReceivedIsASampleEveryTwoSeconds) {
  FakeNvml fake("gpu 0 uuid=GPU-a total=24G used=1G pcie_rx=1500000,1,2500000,none\n");
  EXPECT_THAT(received(fake, fake.poll()), testing::ElementsAre(1'500'000'000));
  EXPECT_THAT(received(fake, fake.poll()), testing::IsEmpty()) << "not read again yet";
  EXPECT_THAT(received(fake, fake.poll()), testing::ElementsAre(2'500'000'000));
  for (int i = 0; i < 4; ++i) EXPECT_THAT(received(fake, fake.poll()), testing::IsEmpty()) << "not known, and no zero";
}

TEST(NvmlGauges, WhatIsReceivedIsNoSampleWhereItIsNotSupported) {
  FakeNvml fake("gpu 0 uuid=GPU-a total=24G used=1G\n");
  for (int i = 0; i < 3; ++i) EXPECT_THAT(received(fake, fake.poll()), testing::IsEmpty());
  EXPECT_TRUE(fake.source->notes().warnings.empty());
}

TEST(NvmlGauges, TellWhatAProcessDoesAndForgetWhatIsNoLongerTold) {
  FakeNvml fake(
      "gpu 0 uuid=GPU-a total=24G used=1G\n"
      "process gpu=0 pid=4242 used=1G sm=87,87,12,12,none\n"
      "process gpu=0 pid=4243 used=1G\n");
  const Batch first = fake.poll();
  EXPECT_THAT(gpu_ratio(fake, first, 4242), Optional(DoubleEq(0.87)));
  EXPECT_EQ(gpu_ratio(fake, first, 4243), std::nullopt) << "idle or not told: not known";
  fake.poll();
  EXPECT_THAT(gpu_ratio(fake, fake.poll(), 4242), Optional(DoubleEq(0.12)));
  fake.poll();
  EXPECT_THAT(gpu_ratio(fake, fake.poll(), 4242), Optional(DoubleEq(0.12))) << "between two samples of the driver";
  std::optional<double> later = 1;
  for (int i = 0; i < 6; ++i) later = gpu_ratio(fake, fake.poll(), 4242);
  EXPECT_EQ(later, std::nullopt);
}

TEST(NvmlGauges, ManyProcessesAndADriverThatLacksTheCall) {
  std::string scenario = "gpu 0 uuid=GPU-a total=80G used=1G\n";
  for (int i = 0; i < 150; ++i)
    scenario += "process gpu=0 pid=" + std::to_string(5000 + i) + " used=1M sm=" + std::to_string(i % 100) + "\n";
  FakeNvml fake(scenario);
  const Batch batch = fake.poll();
  EXPECT_THAT(gpu_ratio(fake, batch, 5042), Optional(DoubleEq(0.42)));
  EXPECT_THAT(gpu_ratio(fake, batch, 5149), Optional(DoubleEq(0.49)));
  FakeNvml old(scenario, "v1");
  EXPECT_EQ(gpu_ratio(old, old.poll(), 5042), std::nullopt);
}

}  // namespace
}  // namespace vramtrack

#include "report/scaled.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(ScaledName, IsTheSameWhereThereIsAClockAndAUnit) {
  for (const char* name : {"oom_in_s", "growth_bytes_per_s", "used_bytes", "because"}) {
    EXPECT_EQ(scaled_name(name, kSecondsAndBytes).name, name);
    EXPECT_EQ(scaled_name(name, kSecondsAndBytes).factor, 1);
  }
}

TEST(ScaledName, CountsStepsInPlaceOfSeconds) {
  Scale steps;
  steps.step = "epoch";
  steps.step_s = 60;
  EXPECT_EQ(scaled_name("oom_in_s", steps).name, "oom_in_epochs");
  EXPECT_EQ(120 * scaled_name("oom_in_s", steps).factor, 2) << "120 s of the time axis are two epochs";
  EXPECT_EQ(scaled_name("growth_bytes_per_s", steps).name, "growth_bytes_per_epoch");
  EXPECT_EQ(10 * scaled_name("growth_bytes_per_s", steps).factor, 600);
  EXPECT_EQ(scaled_name("oom_in_epochs", steps).factor, 1) << "what is scaled stays so";
  EXPECT_EQ(scaled_name("used_bytes", steps).name, "used_bytes");
}

TEST(ScaledName, HasUnitsInPlaceOfBytes) {
  Scale unknown;
  unknown.count(AmountUnit::unknown, 1024);
  EXPECT_EQ(scaled_name("growth_bytes_per_s", unknown).name, "growth_units_per_s");
  EXPECT_EQ(2048 * scaled_name("used_bytes", unknown).factor, 2);
  EXPECT_EQ(scaled_name("used_bytes", unknown).null_name, "used_bytes");
  EXPECT_EQ(scaled_name("oom_in_s", unknown).null_name, "");
}

TEST(ScaledName, IsAPercentageInPlaceOfBytes) {
  Scale percent;
  percent.count_percent();
  EXPECT_EQ(scaled_name("growth_bytes_per_s", percent).name, "growth_percent_per_s");
  EXPECT_EQ(static_cast<double>(Scale::kWholeBytes) * scaled_name("capacity_bytes", percent).factor, 100);
  percent.step = "step";
  EXPECT_EQ(scaled_name("growth_bytes_per_s", percent).name, "growth_percent_per_step");
  EXPECT_EQ(scaled_name("growth_bytes_per_s", percent).null_name, "growth_bytes_per_step");
}

}  // namespace
}  // namespace vramtrack

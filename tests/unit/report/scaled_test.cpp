#include "report/scaled.hpp"

#include <gtest/gtest.h>

#include "core/scale.hpp"

namespace vramtrack {
namespace {

TEST(ScaledName, IsTheSameWhereThereIsAClockAndAUnit) {
  for (const char* name : {"oom_in_s", "growth_bytes_per_s", "used_bytes", "because"}) {
    EXPECT_EQ(scaled_name(name).name, name);
    EXPECT_EQ(scaled_name(name).factor, 1);
  }
}

TEST(ScaledName, CountsStepsInPlaceOfSeconds) {
  Scale steps;
  steps.step = "epoch";
  steps.step_s = 60;
  const ScaleScope said_by(steps);
  EXPECT_EQ(scaled_name("oom_in_s").name, "oom_in_epochs");
  EXPECT_EQ(120 * scaled_name("oom_in_s").factor, 2) << "120 s of the time axis are two epochs";
  EXPECT_EQ(scaled_name("growth_bytes_per_s").name, "growth_bytes_per_epoch");
  EXPECT_EQ(10 * scaled_name("growth_bytes_per_s").factor, 600);
  EXPECT_EQ(scaled_name("oom_in_epochs").factor, 1) << "what is scaled stays so";
  EXPECT_EQ(scaled_name("used_bytes").name, "used_bytes");
}

TEST(ScaledName, HasUnitsInPlaceOfBytes) {
  Scale unknown;
  unknown.has_unit = false;
  unknown.unit_bytes = 1024;
  const ScaleScope said_by(unknown);
  EXPECT_EQ(scaled_name("growth_bytes_per_s").name, "growth_units_per_s");
  EXPECT_EQ(2048 * scaled_name("used_bytes").factor, 2);
}

}  // namespace
}  // namespace vramtrack

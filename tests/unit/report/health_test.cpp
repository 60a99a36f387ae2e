#include "report/health.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_view.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SeriesView healthy() {
  SeriesView s = leaking_device();
  s.health = healthy_gpu();
  return s;
}

std::string clock_of(Timestamp time) {
  return std::to_string(static_cast<int>(seconds_between(at(0), time))) + " s";
}

TEST(Health, APowerCapAndCorrectedErrorsAreHealthy) {
  const SeriesView s = healthy();
  const HealthReport report = judge_health(s, at(7199));
  EXPECT_EQ(report.condition, Condition::healthy);
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(health_words(s.health), "temperature 71 °C; ECC on, 0 uncorrected, 2 corrected; throttle: power cap");
  EXPECT_EQ(xid_words(s, clock_of), "no XID error seen");
}

TEST(Health, WhatIsNotKnownIsSaidAndIsNoZero) {
  SeriesView s = leaking_device();
  EXPECT_EQ(judge_health(s, at(0)).condition, Condition::unknown);
  EXPECT_EQ(health_words(s.health), "temperature, ECC and throttle not known");
  EXPECT_EQ(xid_words(s, clock_of), "XID not known");
  s.health.emplace();
  EXPECT_EQ(health_words(s.health), "temperature not known; ECC not known; throttle not known");
  s.health->hears_xids = true;
  EXPECT_EQ(judge_health(s, at(0)).condition, Condition::unknown) << "no XID is too little to call it well";
  s.health->ecc_enabled = true;
  EXPECT_THAT(health_words(s.health), HasSubstr("ECC on, errors not known"));
  s.health->ecc_enabled = false;
  s.health->throttle = ThrottleSet{};
  EXPECT_EQ(health_words(s.health), "temperature not known; ECC off; throttle: none");
}

TEST(Health, UncorrectedErrorsFailAndComeBeforeHeat) {
  SeriesView s = healthy();
  s.health->throttle->add(Throttle::thermal_hardware);
  s.health->throttle->add(Throttle::hardware_slowdown);
  s.health->ecc_since_load.uncorrected = 1;
  const HealthReport report = judge_health(s, at(7199));
  EXPECT_EQ(report.condition, Condition::failing);
  ASSERT_THAT(report.problems, SizeIs(2)) << "the slowdown is the heat's";
  EXPECT_EQ(report.problems[0].text, "1 uncorrected memory error since the driver was loaded");
  EXPECT_EQ(report.problems[1].condition, Condition::degraded);
  EXPECT_EQ(report.problems[1].text, "too hot: the hardware lowers the clocks at 71 °C");
  for (const HealthProblem& p : report.problems) EXPECT_FALSE(p.next.empty());
}

TEST(Health, ErrorsOfTheBoardsEarlierLifeAreToldAndNotHeldAgainstIt) {
  SeriesView s = healthy();
  s.health->ecc_lifetime.uncorrected = 3;
  EXPECT_EQ(judge_health(s, at(7199)).condition, Condition::healthy);
  EXPECT_THAT(health_words(s.health), HasSubstr("0 uncorrected, 2 corrected, 3 uncorrected over its lifetime"));
}

TEST(Health, EveryOtherReasonToWorry) {
  const auto condition = [](auto spoil) {
    SeriesView s = healthy();
    spoil(*s.health);
    return judge_health(s, at(7199)).condition;
  };
  EXPECT_EQ(condition([](DeviceHealth& h) { h.repair_pending = true; }), Condition::degraded);
  EXPECT_EQ(condition([](DeviceHealth& h) { h.repair_failed = true; }), Condition::failing);
  for (const Throttle reason :
       {Throttle::thermal_software, Throttle::thermal_hardware, Throttle::power_brake, Throttle::hardware_slowdown})
    EXPECT_EQ(condition([&](DeviceHealth& h) { h.throttle->add(reason); }), Condition::degraded);
  for (const Throttle reason : {Throttle::idle, Throttle::clocks_setting, Throttle::other})
    EXPECT_EQ(condition([&](DeviceHealth& h) { h.throttle->add(reason); }), Condition::healthy);
}

TEST(Health, AnXidOfTheHardwareCountsForADayAProgramsOwnDoesNot) {
  SeriesView s = healthy();
  s.last_xid = LastXid{at(0), 79, "XID 79: the GPU has fallen off the bus"};
  EXPECT_EQ(judge_health(s, at(86399)).condition, Condition::failing);
  EXPECT_EQ(judge_health(s, at(86400)).condition, Condition::healthy);
  EXPECT_EQ(xid_words(s, clock_of), "last XID 79: the GPU has fallen off the bus, at 0 s");
  EXPECT_THAT(judge_health(s, at(10)).problems.at(0).next, HasSubstr("restart the machine"));
  s.last_xid->code = 63;
  EXPECT_EQ(judge_health(s, at(10)).condition, Condition::degraded);
  s.last_xid->code = 31;
  EXPECT_EQ(judge_health(s, at(10)).condition, Condition::healthy);
  s.last_xid = LastXid{at(5), 4711, ""};
  EXPECT_EQ(xid_words(s, clock_of), "last XID 4711, at 5 s");
  EXPECT_EQ(judge_health(s, at(10)).condition, Condition::degraded) << "nothing says that it is a program's own";
  EXPECT_THAT(judge_health(s, at(10)).problems.at(0).next, HasSubstr("look it up"));
  for (std::uint64_t code = 144; code <= 150; ++code) {  // NVLink 5
    s.last_xid = LastXid{at(5), code, ""};
    EXPECT_GE(judge_health(s, at(10)).condition, Condition::degraded) << code;
  }
}

TEST(Health, AReplayKnowsItsXidsOnly) {
  SeriesView s = leaking_device();
  s.last_xid = LastXid{at(0), 48, "XID 48"};
  EXPECT_EQ(judge_health(s, at(10)).condition, Condition::failing);
}

}  // namespace
}  // namespace vramtrack

#include "actuate/documents.hpp"

#include <gmock/gmock.h>

#include "actuate/actuator.hpp"
#include "fleet_views.hpp"

namespace vramtrack::actuate {
namespace {

using ::testing::HasSubstr;

TEST(Limits, AShareOfTheFleetCountsWhereItIsFewer) {
  ActuateConfig config;
  config.breaker_nodes = 50;
  config.breaker_share = 0.01;
  EXPECT_EQ(fleet_limits(config).front().most, 50) << "the size of the fleet is not known";
  config.fleet_nodes = 1000;
  EXPECT_EQ(fleet_limits(config).front().most, 10);
  config.fleet_nodes = 20;
  EXPECT_EQ(fleet_limits(config).front().most, 1);
}

TEST(Documents, ASummaryComesBackAndIsToldInWords) {
  Summary summary;
  summary.dry_run = false;
  summary.policies = {"a"};
  summary.breaker = act::Breaker{at(5), "too many"};
  act::Claim claim = alert_of("gn1");
  claim.labels["odd"] = "\"\n\\";
  act::Climb climb = climb_of(claim);
  climb.phase = act::Climb::Phase::climbing;
  climb.subject.process = {42, 7, "gn1"};
  climb.subject.device_id = "GPU-1";
  climb.why = "because";
  summary.alerts_known = {climb};
  const auto back = parse_summary(summary_json(summary));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(summary_words(*back), summary_words(summary));
  EXPECT_EQ(back->alerts_known.at(0).claim->labels.at("odd"), "\"\n\\");
  EXPECT_THAT(summary_json(summary), HasSubstr(R"("subject":"process/gn1/42/7")"));
  EXPECT_THAT(summary_words(*back), HasSubstr("OPEN since 1971-01-01T00:00:05Z: too many"));
  EXPECT_THAT(summary_words(*back), HasSubstr("acting    GpuMemoryLeak gn1 pid 42: because"));
  EXPECT_THAT(summary_metrics(summary), HasSubstr("vramtrack_actuate_breaker_open 1\n"));
}

TEST(Documents, AResetNamesAPerson) {
  EXPECT_EQ(parse_reset(reset_json({"alice", "fixed"}))->by, "alice");
  EXPECT_THAT(parse_reset("{}").error().message, HasSubstr("'by' must name the person"));
  EXPECT_THAT(parse_reset("x").error().message, HasSubstr("expected {"));
}

}  // namespace
}  // namespace vramtrack::actuate

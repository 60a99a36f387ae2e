#include "act/limit.hpp"

#include <gmock/gmock.h>

namespace vramtrack::act {
namespace {

using ::testing::HasSubstr;

Timestamp at(double seconds) {
  return Timestamp{} + std::chrono::hours(24 * 365) + from_seconds(seconds);
}

/// The limits of a fleet.
Limits fleet(std::int64_t nodes, double window_s, std::int64_t per_node = 6) {
  Limits limits;
  limits.add({{Limit::Of::nodes, Limit::Then::open_breaker, nodes, window_s, "actuate.breaker-nodes"},
              {Limit::Of::acts_on_node, Limit::Then::wait, per_node, 3600, "actuate.max-acts-per-node-per-hour"}});
  return limits;
}

/// Takes the step if it is permitted; returns why not, or nothing.
std::string take(Limits& limits, const std::string& node, Timestamp now) {
  const Limits::Answer answer = limits.ask({node, {}}, now);
  if (answer.why.empty()) limits.count_act(now, node);
  return answer.why;
}

TEST(Limits, TheBreakerOpensInsteadOfOneNodeTooManyAndStaysOpen) {
  Limits limits = fleet(2, 100);
  EXPECT_EQ(take(limits, "gn1", at(0)), "");
  EXPECT_EQ(take(limits, "gn2", at(10)), "");
  EXPECT_EQ(take(limits, "gn1", at(20)), "") << "a node that was acted on is none more";
  const Limits::Answer answer = limits.ask({"gn3", {}}, at(30));
  EXPECT_TRUE(answer.opens);
  EXPECT_THAT(answer.why, HasSubstr("gn3 would be node number 3"));
  ASSERT_TRUE(limits.breaker());
  EXPECT_EQ(limits.nodes_acted_on(at(30)), 2U);
  EXPECT_THAT(take(limits, "gn1", at(40)), HasSubstr("has been open since"));
  EXPECT_THAT(take(limits, "gn1", at(4000)), HasSubstr("reset --by NAME")) << "time does not close it";
}

TEST(Limits, AClosedBreakerDoesNotOpenAgainAtOnce) {
  Limits limits = fleet(1, 100);
  EXPECT_EQ(take(limits, "gn1", at(0)), "");
  EXPECT_NE(take(limits, "gn2", at(1)), "");
  limits.close_breaker();
  EXPECT_EQ(limits.nodes_acted_on(at(2)), 0U);
  EXPECT_EQ(take(limits, "gn2", at(2)), "");
  EXPECT_NE(take(limits, "gn1", at(3)), "");
}

TEST(Limits, TheBreakersWindowSlides) {
  Limits limits = fleet(1, 100);
  EXPECT_EQ(take(limits, "gn1", at(0)), "");
  EXPECT_EQ(limits.nodes_acted_on(at(99)), 1U);
  EXPECT_EQ(limits.nodes_acted_on(at(100)), 0U);
  EXPECT_EQ(take(limits, "gn2", at(100)), "");
}

TEST(Limits, ANodeHasALimitOfActsAnHour) {
  Limits limits = fleet(3, 10, 2);
  EXPECT_EQ(take(limits, "gn1", at(0)), "");
  EXPECT_EQ(take(limits, "gn1", at(60)), "");
  EXPECT_THAT(take(limits, "gn1", at(120)), HasSubstr("max-acts-per-node-per-hour"));
  EXPECT_FALSE(limits.breaker());
  EXPECT_EQ(take(limits, "gn2", at(120)), "");
  limits.forget_old(at(3601));
  EXPECT_EQ(take(limits, "gn1", at(3601)), "");
}

TEST(Limits, WhatIsForbiddenForAnotherReasonDoesNotOpenTheBreaker) {
  Limits limits = fleet(0, 100);
  limits.use({{Limit::Of::acts, Limit::Then::wait, 0, 3600, "act.max-acts-per-hour"}});
  EXPECT_THAT(take(limits, "gn1", at(0)), HasSubstr("act.max-acts-per-hour"));
  EXPECT_FALSE(limits.breaker());
}

TEST(Limits, RestartsOfOtherWorkAreNotCounted) {
  Limits limits;
  limits.use({{Limit::Of::restarts, Limit::Then::refuse, 1, 86400, "act.max-retries"}});
  limits.count_restart(at(0), "unit x.service");
  EXPECT_EQ(limits.ask({{}, "unit y.service"}, at(1)).why, "");
  EXPECT_EQ(limits.ask({{}, {}}, at(1)).why, "");
  const Limits::Answer answer = limits.ask({{}, "unit x.service"}, at(1));
  EXPECT_EQ(answer.then, Limit::Then::refuse);
  EXPECT_THAT(answer.why, HasSubstr("unit x.service was started again 1 times"));
}

}  // namespace
}  // namespace vramtrack::act

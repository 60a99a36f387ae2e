#include "actuate/state.hpp"

#include <gmock/gmock.h>

#include "../temp_folder.hpp"
#include "actuate/documents.hpp"

namespace vramtrack::actuate {
namespace {

using ::testing::HasSubstr;

Timestamp at(double seconds) {
  return Timestamp{} + std::chrono::hours(24 * 365) + from_seconds(seconds);
}

Case firing(const std::string& fingerprint, double starts_s) {
  Case one;
  one.fingerprint = fingerprint;
  one.starts_at = one.first_seen = one.last_seen = at(starts_s);
  one.labels = {{"alertname", "GpuMemoryLeak"}, {"odd", "\"\n\\"}};
  one.subject = "process/gn1/42/7";
  one.process = {42, 7, "gn1"};
  one.has_begun = true;
  one.why = "because";
  return one;
}

TEST(State, ComesBackFromTheDiskAsItWas) {
  const TempFolder folder;
  State state;
  state.dry_run = false;
  state.breaker = OpenBreaker{at(5), "too many"};
  state.acts = {{at(1), "gn1"}};
  state.last_webhook = at(9);
  const Case one = firing("ab", 0.5);
  state.cases[one.key()] = one;
  ASSERT_TRUE(save_state(state, folder.path()));
  const auto back = load_state(folder.path());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(state_json(*back), state_json(state));
  EXPECT_EQ(back->cases.at(one.key()).labels.at("odd"), "\"\n\\");
}

TEST(State, NoFileIsAnEmptyStateAndAnotherFileIsAnError) {
  const TempFolder folder;
  EXPECT_TRUE(load_state(folder.path()));
  ASSERT_TRUE(save_state({}, folder.path()));
  EXPECT_TRUE(load_state(folder.path())->cases.empty());
  EXPECT_THAT(parse_state("{}").error().message, HasSubstr("its schema is not"));
  EXPECT_THAT(parse_state(R"({"schema": "vramtrack.actuate.state.v1"})").error().message, HasSubstr("dry_run"));
}

TEST(State, ClosedCasesMakeRoomBeforeOpenOnes) {
  State state;
  for (std::size_t i = 0; i < kMostCases + 2; ++i) {
    Case one = firing("ab", static_cast<double>(i));
    one.is_closed = i % 2 == 1;
    state.cases[one.key()] = one;
  }
  trim(state);
  EXPECT_EQ(state.cases.size(), kMostCases);
  EXPECT_TRUE(state.cases.contains(firing("ab", 0).key())) << "open, though the oldest";
  EXPECT_FALSE(state.cases.contains(firing("ab", 1).key()));
  EXPECT_FALSE(state.cases.contains(firing("ab", 3).key()));
}

TEST(State, WhatADryRunLeftIsOpenAgainForARunThatActs) {
  State state;
  Case one = firing("ab", 0);
  one.is_closed = true;
  state.cases[one.key()] = one;
  state.acts = {{at(1), "gn1"}};
  state.breaker = OpenBreaker{at(5), "too many"};
  State acting = state;
  acting.dry_run = false;
  forget_dry_run(acting);
  EXPECT_EQ(acting.acts.size(), 1U);
  EXPECT_TRUE(acting.cases.begin()->second.is_closed);
  forget_dry_run(state);
  EXPECT_TRUE(state.acts.empty());
  EXPECT_FALSE(state.breaker);
  EXPECT_FALSE(state.cases.begin()->second.is_closed);
  EXPECT_FALSE(state.cases.begin()->second.is_bound());
}

TEST(Breaker, OpensInsteadOfOneNodeTooManyAndStaysOpen) {
  State state;
  Limits limits;
  limits.nodes = 2;
  limits.window_s = 100;
  EXPECT_EQ(take_act(state, limits, "gn1", at(0)), "");
  EXPECT_EQ(take_act(state, limits, "gn2", at(10)), "");
  EXPECT_EQ(take_act(state, limits, "gn1", at(20)), "") << "a node that was acted on is none more";
  EXPECT_THAT(take_act(state, limits, "gn3", at(30)), HasSubstr("gn3 would be node number 3"));
  ASSERT_TRUE(state.breaker);
  EXPECT_EQ(state.acts.size(), 3U);
  EXPECT_THAT(take_act(state, limits, "gn1", at(40)), HasSubstr("is open since"));
  EXPECT_THAT(take_act(state, limits, "gn1", at(4000)), HasSubstr("reset --by NAME")) << "time does not close it";
}

TEST(Breaker, ItsWindowSlides) {
  State state;
  Limits limits;
  limits.nodes = 1;
  limits.window_s = 100;
  EXPECT_EQ(take_act(state, limits, "gn1", at(0)), "");
  EXPECT_EQ(nodes_acted_on(state, limits, at(99)), 1U);
  EXPECT_EQ(nodes_acted_on(state, limits, at(100)), 0U);
  EXPECT_EQ(take_act(state, limits, "gn2", at(100)), "");
}

TEST(Breaker, AShareOfTheFleetCountsWhereItIsFewer) {
  Limits limits;
  limits.nodes = 50;
  limits.share = 0.01;
  EXPECT_EQ(nodes_allowed(limits), 50) << "the size of the fleet is not known";
  limits.fleet_nodes = 1000;
  EXPECT_EQ(nodes_allowed(limits), 10);
  limits.fleet_nodes = 20;
  EXPECT_EQ(nodes_allowed(limits), 1);
}

TEST(Breaker, ANodeHasALimitOfActsAnHour) {
  State state;
  Limits limits;
  limits.acts_per_node_per_hour = 2;
  limits.window_s = 10;
  EXPECT_EQ(take_act(state, limits, "gn1", at(0)), "");
  EXPECT_EQ(take_act(state, limits, "gn1", at(60)), "");
  EXPECT_THAT(take_act(state, limits, "gn1", at(120)), HasSubstr("max-acts-per-node-per-hour"));
  EXPECT_FALSE(state.breaker);
  EXPECT_EQ(take_act(state, limits, "gn2", at(120)), "");
  EXPECT_EQ(take_act(state, limits, "gn1", at(3601)), "");
}

TEST(Documents, ASummaryComesBackAndIsToldInWords) {
  Summary summary;
  summary.dry_run = false;
  summary.policies = {"a"};
  summary.breaker = OpenBreaker{at(5), "too many"};
  summary.cases = {firing("ab", 0)};
  const auto back = parse_summary(summary_json(summary));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(summary_words(*back), summary_words(summary));
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

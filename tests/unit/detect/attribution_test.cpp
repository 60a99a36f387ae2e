#include "detect/attribution.hpp"

#include <gtest/gtest.h>

#include "detect/history.hpp"

namespace vramtrack {
namespace {

TEST(Attribution, BlamesTheGrowerNotTheLargest) {
  const auto a = attribute(100, {{1, 10, "vllm", 5000, 5000, false, 0}, {2, 20, "train", 300, 395, true, 95}});
  ASSERT_TRUE(a.suspect);
  EXPECT_EQ(a.suspect->pid, 2U);
  EXPECT_DOUBLE_EQ(a.suspect->share, 0.95);
}

TEST(Attribution, NobodyVisibleGrows) {
  const auto a = attribute(100, {{1, 10, "vllm", 5000, 5004, false, 0}});
  ASSERT_TRUE(a.suspect);
  EXPECT_EQ(a.suspect->pid, 0U);
  EXPECT_NEAR(a.suspect->share, 0.96, 1e-9);
}

TEST(Attribution, AThirdOfTheGrowthMakesASuspect) {
  const auto with = [](double grown) { return attribute(100, {{1, 10, "train", 300, 300 + grown, true, grown}}); };
  ASSERT_TRUE(with(34).suspect);
  EXPECT_EQ(with(34).suspect->pid, 1U);
  EXPECT_EQ(with(40).suspect->pid, 1U);
  ASSERT_TRUE(with(33).suspect);
  EXPECT_EQ(with(33).suspect->pid, 0U) << "two thirds are nobody's that can be seen";
}

TEST(Attribution, WithoutProcessesNobodyIsNamed) {
  EXPECT_FALSE(attribute(100, {}).suspect);
}

TEST(Attribution, ArrivalsLessDeparturesAreChurn) {
  // 80 arrived, 20 left, none grows: 60 of 60 explained.
  const auto a =
      attribute(60, {{1, 1, "a", 0, 50, false, 0}, {2, 1, "b", 0, 30, false, 0}, {3, 1, "c", 20, 0, false, 0}});
  EXPECT_DOUBLE_EQ(a.churn_share, 1.0);
  EXPECT_FALSE(a.suspect);
}

TEST(Attribution, AnArrivalThatGrowsIsASuspectForWhatItGrew) {
  const auto a = attribute(100, {{7, 1, "leaky", 0, 100, true, 70}});
  ASSERT_TRUE(a.suspect);
  EXPECT_EQ(a.suspect->pid, 7U);
  EXPECT_DOUBLE_EQ(a.suspect->share, 0.7);
  EXPECT_DOUBLE_EQ(a.churn_share, 0.3);
}

/// Workers of one program, with 5 bytes each, which arrive at these shares of the time.
std::vector<ProcessGrowth> workers(const std::vector<double>& came_at) {
  std::vector<ProcessGrowth> out;
  for (const double share : came_at) {
    ProcessGrowth p;
    p.pid = static_cast<std::uint32_t>(100 + out.size());
    p.command = p.program = "worker";
    p.now_bytes = 5;
    p.came_at = share;
    out.push_back(p);
  }
  return out;
}

TEST(Attribution, WorkersThatComeOneAfterAnotherAndStayAreAPile) {
  const auto a = attribute(30, workers({0.1, 0.2, 0.4, 0.6, 0.8, 0.9}));
  ASSERT_TRUE(a.pile);
  EXPECT_EQ(a.pile->processes, 6U);
  EXPECT_EQ(a.pile->command, "worker");
  EXPECT_DOUBLE_EQ(a.pile->bytes, 30);
}

TEST(Attribution, WorkersThatCameTogetherOrWentAgainAreNone) {
  EXPECT_FALSE(attribute(30, workers({0.01, 0.01, 0.02, 0.02, 0.02, 0.02})).pile) << "a job";
  EXPECT_FALSE(attribute(30, workers({0.1, 0.2, 0.3, 0.4, 0.5, 0.55})).pile) << "it is over";
  EXPECT_FALSE(attribute(80, workers({0.1, 0.2, 0.4, 0.6, 0.8, 0.9})).pile) << "not most of the growth";
  EXPECT_FALSE(attribute(30, workers({0.1, 0.4, 0.6, 0.8, 0.9})).pile) << "a few";
  auto replaced = workers({0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.3, 0.5});
  replaced[6].now_bytes = replaced[7].now_bytes = 0;
  EXPECT_FALSE(attribute(30, replaced).pile);
}

TEST(History, RemembersTheWholePastInFixedMemory) {
  History history;
  for (int i = 0; i < 100000; ++i) history.observe(Timestamp{std::chrono::seconds{i}}, i);
  EXPECT_LE(history.spans().size(), History::kCapacity);
  const auto then = history.at(Timestamp{std::chrono::seconds{50000}});
  ASSERT_TRUE(then);
  EXPECT_NEAR(static_cast<double>(then->mean_bytes), 50000, 2000);
  EXPECT_FALSE(history.at(Timestamp{std::chrono::seconds{-1}}));
}

}  // namespace
}  // namespace vramtrack

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
  // 80 arrived, 20 left, nobody grows: 60 of 60 explained.
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

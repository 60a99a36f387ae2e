#include "probe/spans.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace vramtrack::probe {
namespace {

const auto nothing = [](const Span&) {};

TEST(Spans, WhatDoesNotOverlapStaysApart) {
  Spans spans;
  EXPECT_EQ(spans.add(100, 200, nothing).end, 200U);
  EXPECT_EQ(spans.add(0, 100, nothing).begin, 0U);
  EXPECT_EQ(spans.add(200, 201, nothing).end, 201U);
  EXPECT_EQ(spans.count(), 3U);
  EXPECT_EQ(spans.remove(100).end, 200U);
  EXPECT_EQ(spans.remove(100).end, 0U);
  EXPECT_EQ(spans.count(), 2U);
  spans.clear();
}

TEST(Spans, AUseWithinAnotherChangesNothingUntilBothEnd) {
  Spans spans;
  spans.add(0, 100, nothing);
  EXPECT_EQ(spans.add(10, 20, nothing).end, 0U);
  EXPECT_EQ(spans.remove(0).end, 0U);
  EXPECT_EQ(spans.remove(10).end, 100U);
  spans.clear();
}

TEST(Spans, AUseOverSeveralTakesTheirPlace) {
  Spans spans;
  spans.add(0, 10, nothing);
  spans.add(20, 30, nothing);
  spans.add(40, 50, nothing);
  std::vector<std::uint64_t> replaced;
  const Span span = spans.add(5, 25, [&](const Span& old) { replaced.push_back(old.begin); });
  EXPECT_EQ(span.begin, 0U);
  EXPECT_EQ(span.end, 30U);
  EXPECT_EQ(replaced, (std::vector<std::uint64_t>{0, 20}));
  EXPECT_EQ(spans.count(), 2U);
  EXPECT_EQ(spans.remove(0).end, 0U);
  EXPECT_EQ(spans.remove(20).end, 0U);
  EXPECT_EQ(spans.remove(5).end, 30U);
  spans.clear();
}

/// Memory in use is covered by exactly one span, and nothing is left at the end.
TEST(Spans, CoverEveryUse) {
  Spans spans;
  std::mt19937 random(11);
  struct Use {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<Use> uses;
  std::uint64_t held = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (uses.empty() || random() % 2 == 0) {
      const std::uint64_t begin = random() % 4000;
      const Use use{begin, begin + 1 + random() % 30};
      uses.push_back(use);
      const Span span = spans.add(use.begin, use.end, [&](const Span& old) { held -= old.end - old.begin; });
      held += span.end - span.begin;
    } else {
      const std::size_t which = random() % uses.size();
      const Span span = spans.remove(uses[which].begin);
      held -= span.end - span.begin;
      uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(which));
    }
    std::uint64_t sum = 0;
    for (std::size_t s = 0; s < spans.count(); ++s) sum += spans[s].end - spans[s].begin;
    ASSERT_EQ(sum, held);
  }
  for (const Use& use : uses) {
    int covers = 0;
    for (std::size_t s = 0; s < spans.count(); ++s) covers += spans[s].begin <= use.begin && use.end <= spans[s].end;
    ASSERT_EQ(covers, 1);
  }
  for (const Use& use : uses) spans.remove(use.begin);
  EXPECT_EQ(spans.count(), 0U);
  spans.clear();
}

}  // namespace
}  // namespace vramtrack::probe

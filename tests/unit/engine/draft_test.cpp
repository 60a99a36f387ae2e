#include "engine/draft.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace vramtrack {
namespace {

template <class Stage, class Before>
constexpr bool follows = std::is_constructible_v<Stage, Before>;

TEST(Draft, EachStageFollowsOneOther) {
  static_assert(follows<Explained, Found> && follows<Limited, Explained> && follows<Attributed, Limited> &&
                follows<Decided, Attributed>);
  static_assert(!follows<Explained, Draft> && !follows<Limited, Found> && !follows<Attributed, Explained> &&
                !follows<Decided, Limited> && !follows<Limited, Attributed>);
  Found found;
  found.finding.because = "grows";
  EXPECT_EQ(Limited(Explained(std::move(found))).finding.because, "grows");
}

}  // namespace
}  // namespace vramtrack

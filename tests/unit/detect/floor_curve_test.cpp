#include "detect/floor_curve.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace vramtrack {
namespace {

Timestamp at(double s) {
  return Timestamp{from_seconds(1.75e9 + s)};
}

RC_GTEST_PROP(FloorCurve, KeepsTheFloor, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 1000)));
  FloorCurve curve;
  for (std::size_t i = 0; i < values.size(); ++i) {
    curve.observe(at(7.0 * static_cast<double>(i)), 5000);  // replaced by the next
    curve.observe(at(7.0 * static_cast<double>(i)), values[i]);
  }
  const int lowest = *std::min_element(values.begin(), values.end());
  const double end_s = 7.0 * static_cast<double>(values.size() - 1);
  for (std::size_t level = 0; level < FloorCurve::kLevels; ++level) {
    if (end_s > 40 * FloorCurve::width_s(level)) continue;
    const auto floor = curve.floor_between(level, at(0), at(end_s));
    RC_ASSERT(floor && *floor == lowest);
  }
}

TEST(FloorCurve, ForgetsWhatIsLongPast) {
  FloorCurve curve;
  curve.observe(at(0), 1);
  for (double t = 10; t <= 1000; t += 10) curve.observe(at(t), 100);
  EXPECT_EQ(curve.floor_between(0, at(0), at(1000)), 100) << "eleven minutes";
  EXPECT_EQ(curve.floor_between(3, at(0), at(1000)), 1);
  EXPECT_EQ(curve.floor_between(0, at(2000), at(3000)), std::nullopt);
  EXPECT_EQ(FloorCurve().floor_between(0, at(0), at(1000)), std::nullopt);
}

}  // namespace
}  // namespace vramtrack

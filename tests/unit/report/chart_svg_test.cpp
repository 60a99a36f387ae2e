#include "report/chart_svg.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/format.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Timestamp at(double seconds) {
  return Timestamp(from_seconds(seconds));
}

/// Ten minutes from 4 GiB on, one point per minute.
ChartInput rising() {
  ChartInput chart;
  for (int minute = 0; minute <= 10; ++minute) {
    const double bytes = (4 + 0.1 * minute) * kGiB;
    chart.points.push_back({at(60.0 * minute), bytes - kMiB, bytes, bytes + kMiB});
  }
  chart.begin = chart.points.front().time;
  chart.last = chart.points.back().time;
  chart.step_s = 60;
  chart.clock_is_relative = true;
  return chart;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t from = 0; (from = text.find(part, from)) != std::string::npos; from += part.size()) ++n;
  return n;
}

TEST(ChartSvg, NothingIsDrawnOfLessThanTwoPoints) {
  ChartInput chart = rising();
  chart.points.resize(1);
  EXPECT_EQ(chart_svg(chart, ChartStyle::of_page), "");
  EXPECT_EQ(chart_svg({}, ChartStyle::standalone), "");
}

TEST(ChartSvg, AHealthySeriesHasBandAndMeanOnly) {
  const std::string svg = chart_svg(rising(), ChartStyle::of_page);
  EXPECT_THAT(svg, AllOf(StartsWith("<svg viewBox=\"0 0 860 260\" role=\"img\""), HasSubstr("class=\"band\""),
                         HasSubstr("class=\"mean\"")));
  EXPECT_THAT(svg,
              AllOf(Not(HasSubstr("class=\"capacity\"")), Not(HasSubstr("class=\"trend\"")),
                    Not(HasSubstr("class=\"alert\"")), Not(HasSubstr("class=\"onset\"")), Not(HasSubstr("<style>"))));
}

TEST(ChartSvg, CapacityAlertsOnsetAndTheEndToCome) {
  ChartInput chart = rising();
  chart.capacity_bytes = 8 * kGiB;
  chart.alerts = {at(-5), at(300)};
  chart.onset = at(60);
  chart.forecast = ChartForecast{{400, 600, 900}, 0.1 * kGiB / 60};
  const std::string svg = chart_svg(chart, ChartStyle::of_page);
  EXPECT_THAT(svg, AllOf(HasSubstr("class=\"capacity\""), HasSubstr("growing since " + format_moment(at(60), true)),
                         HasSubstr("out of memory in 0h 10m"), HasSubstr("class=\"trend\"")));
  EXPECT_EQ(count(svg, "class=\"alert\""), 1U) << "alerts from before the chart begins are left out";
}

TEST(ChartSvg, AWallIsALineWithItsName) {
  ChartInput chart = rising();
  EXPECT_THAT(chart_svg(chart, ChartStyle::standalone), Not(HasSubstr("<line class=\"wall\"")));
  chart.wall = MemoryEnd{8 * kGiB, "dmem.max of <pod>"};
  EXPECT_THAT(chart_svg(chart, ChartStyle::standalone),
              AllOf(HasSubstr("<line class=\"wall\""), HasSubstr(">ends by dmem.max of &lt;pod&gt;</text>")));
}

TEST(ChartSvg, NothingIsDrawnWhereNothingWasSeen) {
  ChartInput chart = rising();
  chart.points.erase(chart.points.begin() + 4, chart.points.begin() + 8);
  EXPECT_EQ(count(chart_svg(chart, ChartStyle::of_page), "class=\"mean\""), 2U);
  chart.step_s = 120;
  EXPECT_EQ(count(chart_svg(chart, ChartStyle::of_page), "class=\"mean\""), 1U);
}

TEST(ChartSvg, StandaloneHasItsOwnColoursAndEscapesItsLabel) {
  ChartInput chart = rising();
  chart.label = "<leak> & \"growth\"";
  EXPECT_THAT(chart_svg(chart, ChartStyle::standalone),
              AllOf(HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""), HasSubstr("<style>"),
                    HasSubstr("&lt;leak&gt; &amp; &quot;growth&quot;"), Not(HasSubstr("<script"))));
}

}  // namespace
}  // namespace vramtrack

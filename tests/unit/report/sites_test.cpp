// A run's report as others read it: which parts are kept, and what a hostile one can do.
#include "report/sites.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "sample_view.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;

constexpr const char* kReport = R"({"schema":"vramtrack.trace_report.v1","program":"python train.py","duration_s":61.5,
"verdict":{"leak":true,"suspected":true,"can_tell":true,"because":"1 site kept growing","next_step":"look","growth_bytes_per_s":1500.5,
"residual_grows":false,"processes":[{"pid":4242}],"notes":["sampled"]},"residual_bytes":77,
"sites":[{"leak":true,"site":"train.py:57 train_step","call":"cuMemAlloc","live_bytes":9000,"live_count":3,
"growth_bytes_per_s":1500.5,"oldest_s":60.5,"share":1.0,"frames":[{"function":"train_step","file":"train.py","line":57,"python":true}]},
{"leak":false,"site":"model.py:3 load","call":"cuMemAlloc","live_bytes":1,"live_count":1,"growth_bytes_per_s":0,"oldest_s":61,"share":0,"frames":[]}]})";

std::string with_sites(const std::string& sites) {
  return R"({"schema":"vramtrack.trace_report.v1","sites":[)" + sites + "]}";
}

TEST(Sites, OfTheViewAreOrderedByGrowthAndTheFirstLeaksIfItsProcessDoes) {
  SeriesView process = sample_view().series[1];
  process.sites = {{"model.py:4 load", 3e9, 100, 0, 900, {{880, 900, 3e9, 3e9}}},
                   {"train.py:57 step", 1e9, 500, 0, 2, {{300, 600, 5e8, 4e8}, {0, 300, 6e8, 5e8}}}};
  process.verdict.finding.leak = false;
  EXPECT_FALSE(sites_of(process).leak);
  process.verdict.finding = leak_finding();
  const SitesReport report = sites_of(process);
  EXPECT_TRUE(report.leak);
  EXPECT_EQ(report.because, leak_finding().because);
  ASSERT_EQ(report.sites.size(), 2U);
  EXPECT_EQ(report.sites[0].site, "train.py:57 step");
  EXPECT_TRUE(report.sites[0].leak);
  EXPECT_EQ(report.sites[0].live_bytes, 1000000000);
  EXPECT_EQ(report.sites[0].live_count, 500);
  EXPECT_DOUBLE_EQ(report.sites[0].growth_bytes_per_s, 1.5e6);
  EXPECT_EQ(report.sites[0].share, 1);
  EXPECT_EQ(report.sites[0].oldest_s, 600);
  EXPECT_EQ(report.sites[1].growth_bytes_per_s, 0);  // its growth has stopped
  EXPECT_EQ(parse_sites_json(sites_json(report))->sites, report.sites);
}

TEST(Sites, AreReadAndWrittenAlike) {
  const auto report = parse_sites_json(kReport);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->program, "python train.py");
  EXPECT_EQ(report->duration_s, 61.5);
  EXPECT_TRUE(report->leak);
  EXPECT_TRUE(report->suspected);
  EXPECT_TRUE(report->can_tell);
  EXPECT_EQ(report->because, "1 site kept growing");
  EXPECT_EQ(report->residual_bytes, 77);
  ASSERT_EQ(report->sites.size(), 2U);
  const MemorySite leak{
      true, "train.py:57 train_step", "cuMemAlloc", 9000, 3, 1500.5, 60.5, 1.0, {{"train_step", "train.py", 57, true}}};
  EXPECT_EQ(report->sites[0], leak);
  EXPECT_EQ(report->sites_left_out, 0U);
  const auto again = parse_sites_json(sites_json(*report));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *report);
}

TEST(Sites, TheLeakingAndTheLargestAreKept) {
  std::string sites;
  for (int i = 0; i < 50; ++i) sites += fmt::format(R"({{"leak":false,"site":"{0}","live_bytes":{0}}},)", i);
  for (int i = 0; i < 130; ++i) sites += fmt::format(R"({{"leak":true,"site":"leak {0}"}}{1})", i, i < 129 ? "," : "");
  const auto report = parse_sites_json(with_sites(sites));
  ASSERT_TRUE(report);
  ASSERT_EQ(report->sites.size(), kMostLeakingSites + kMostOtherSites);
  EXPECT_EQ(report->sites.front().site, "leak 0");
  EXPECT_EQ(report->sites[kMostLeakingSites].site, "49");
  EXPECT_EQ(report->sites.back().site, "30");
  EXPECT_EQ(report->sites_left_out, 180 - report->sites.size());
  EXPECT_EQ(parse_sites_json(sites_json(*report))->sites_left_out, report->sites_left_out);
}

TEST(Sites, NamesOfAnyLengthStayBounded) {
  const std::string name(4'000, 'x');
  std::string frames;
  for (int i = 0; i < 80; ++i)
    frames += fmt::format(R"({}{{"function":"{}","file":"f"}})", i > 0 ? "," : "", name.substr(0, 800));
  std::string sites;
  for (int i = 0; i < 60; ++i)
    sites += fmt::format(R"({}{{"leak":true,"site":"{}","frames":[{}]}})", i > 0 ? "," : "", name, frames);
  const auto report = parse_sites_json(with_sites(sites));
  ASSERT_TRUE(report);
  ASSERT_FALSE(report->sites.empty());
  EXPECT_EQ(report->sites[0].frames.size(), kMostSiteFrames);
  EXPECT_EQ(report->sites[0].site, std::string(kMostNameBytes, 'x') + "…");
  EXPECT_LT(sites_json(*report).size(), 2 * kMostSitesBytes);
  EXPECT_EQ(report->sites.size() + report->sites_left_out, 60U);
}

TEST(Sites, AreCutBetweenCharacters) {
  std::string name(kMostNameBytes - 1, 'x');
  const auto report = parse_sites_json(with_sites(R"({"site":")" + name + R"(äöü"})"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->sites[0].site, name + "…");
}

TEST(Sites, WhatIsNoReportIsAnError) {
  for (const char* wrong :
       {"", "{}", "[]", "3", R"({"schema":"vramtrack.view.v1","sites":[]})",
        R"({"schema":"vramtrack.trace_report.v1","sites":{}})", R"({"schema":"vramtrack.trace_report.v1")"}) {
    const auto report = parse_sites_json(wrong);
    ASSERT_FALSE(report) << wrong;
    EXPECT_THAT(report.error().message, HasSubstr("not a report of sites"));
  }
}

TEST(Sites, MembersOfAnotherKindAreLeftOut) {
  const auto report =
      parse_sites_json(R"({"schema":"vramtrack.trace_report.v1","program":7,"verdict":[],"residual_bytes":"x",
"sites_left_out":-4,"sites":[3,null,{"site":[],"live_bytes":1e300,"live_count":"many","growth_bytes_per_s":"x","frames":[4,{"line":-9}]}]})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->program, "");
  EXPECT_FALSE(report->residual_bytes);
  ASSERT_EQ(report->sites.size(), 3U);
  EXPECT_EQ(report->sites[2].live_bytes, 0);
  EXPECT_EQ(report->sites[2].frames.size(), 2U);
  EXPECT_EQ(report->sites[2].frames[1].line, 0U);
  EXPECT_EQ(report->sites_left_out, 0U);
}

TEST(Sites, DeepNestingIsRefusedAndTextMayLookLikeIt) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_FALSE(parse_sites_json(R"({"schema":"vramtrack.trace_report.v1","deep":)" + deep + R"(,"sites":[]})"));
  EXPECT_FALSE(parse_sites_json(R"({"schema":"vramtrack.trace_report.v1","text":"\"","deep":)" + deep + "}"));
  EXPECT_TRUE(parse_sites_json(R"({"schema":"vramtrack.trace_report.v1","text":"\"[)" + std::string(100, '{') +
                               R"(","sites":[]})"));
}

}  // namespace
}  // namespace vramtrack

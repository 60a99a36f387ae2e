#include "report/story.hpp"

#include <gmock/gmock.h>

namespace vramtrack {
namespace {

using testing::ElementsAre;

Timestamp at(double s) {
  return Timestamp{from_seconds(s)};
}

struct One {
  One(std::uint32_t pid, double raised_s, std::optional<double> cleared_s = {}, const std::string& device = "GPU-0") {
    key = {pid == 0 ? Metric::device_used : Metric::process_used, device, pid, pid};
    alert.raised = at(raised_s);
    alert.finding.leak = true;
    if (!cleared_s) return;
    alert.cleared = at(*cleared_s);
    alert.ended = AlertEnd::process_ended;
  }
  SeriesKey key;
  Alert alert;
};

std::vector<std::size_t> told(const std::vector<One>& all) {
  std::vector<AlertOf> alerts;
  for (const One& one : all) alerts.push_back({one.key, one.alert});
  return told_with(alerts);
}

TEST(Story, AProcessIsToldWithItsDevice) {
  EXPECT_THAT(told({{0, 100}, {42, 90}}), ElementsAre(0, 0));
  EXPECT_THAT(told({{42, 90, 200}, {0, 100, 205}}), ElementsAre(1, 1));
}

TEST(Story, AnotherTimeOrAnotherGpuIsAnotherLeak) {
  EXPECT_THAT(told({{0, 100, 200}, {42, 300, 400}}), ElementsAre(0, 1));
  EXPECT_THAT(told({{0, 100}, {42, 90, {}, "GPU-1"}}), ElementsAre(0, 1));
}

TEST(Story, WhatStandsIsNotHiddenBehindWhatHasEnded) {
  EXPECT_THAT(told({{0, 100, 200}, {42, 90}}), ElementsAre(0, 1));
  EXPECT_THAT(told({{0, 100}, {42, 90, 150}}), ElementsAre(0, 0));
}

TEST(Story, ProcessesAreNotToldWithEachOther) {
  EXPECT_THAT(told({{42, 100}, {43, 100}}), ElementsAre(0, 1));
}

}  // namespace
}  // namespace vramtrack

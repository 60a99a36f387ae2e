#include "fleet/json_series.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace vramtrack;
using namespace vramtrack::fleet;

struct Got {
  std::string lacks;
  std::vector<std::pair<Labels, std::vector<Point>>> series;
  SeriesSink sink = [this](const Labels& labels, const std::vector<Point>& points) {
    series.emplace_back(labels, points);
  };
};

const Query kAll{{}, INT64_MIN, INT64_MAX};

constexpr std::string_view kLines =
    "{\"metric\":{\"__name__\":\"used\",\"gpu\":\"0\"},\"values\":[1,2.5,null,\"NaN\",3e9],"
    "\"timestamps\":[1000,2000,3000,4000,5000]}\n"
    "\n"
    "{\"metric\":{\"__name__\":\"used\",\"pod\":\"a \\\"b\\\" "
    "\\u00e9\\ud83d\\ude00\"},\"values\":[7],\"timestamps\":[1000]}\n";

TEST(ExportAnswer, LinesInAnyPieces) {
  for (const std::size_t piece : {1UL, 10UL, 10'000UL}) {
    Got got;
    ExportAnswer answer(kAll, got.sink);
    for (std::size_t at = 0; at < kLines.size(); at += piece) ASSERT_TRUE(answer.take(kLines.substr(at, piece)));
    ASSERT_TRUE(answer.end());
    ASSERT_EQ(got.series.size(), 2U);
    const auto& points = got.series[0].second;
    ASSERT_EQ(points.size(), 5U);
    EXPECT_EQ(points[1].time_ms, 2000);
    EXPECT_EQ(points[1].value, 2.5);
    EXPECT_TRUE(std::isnan(points[2].value));
    EXPECT_TRUE(std::isnan(points[3].value));
    EXPECT_EQ(points[4].value, 3e9);
    EXPECT_EQ(value_of(got.series[1].first, "pod"), "a \"b\" \u00e9\U0001F600");
  }
}

TEST(ExportAnswer, DamageIsAnErrorWithItsLine) {
  const auto error = [](std::string_view text) {
    Got got;
    ExportAnswer answer(kAll, got.sink);
    const Status taken = answer.take(text);
    return !taken ? taken.error().message : answer.end() ? "" : answer.end().error().message;
  };
  EXPECT_EQ(error("{\"metric\":{},\"values\":[1,2],\"timestamps\":[1]}\n"),
            "line 1 of the export has 2 values and 1 timestamps");
  EXPECT_EQ(error("{\"metric\":{},\"values\":[1],\"timestamps\":[1]}\n{\"metric\":5}\n"),
            "line 2 of the export is damaged at column 11");
  EXPECT_EQ(error("{\"metric\":{},\"values\":[1],\"timesta"), "the export ends within line 1");
  EXPECT_EQ(error("{} x\n"), "line 1 of the export is damaged at column 4");
}

TEST(Matrix, WhatQueryRangeAnswers) {
  Got got;
  ASSERT_TRUE(read_matrix(R"({"status":"success","data":{"resultType":"matrix","result":[
      {"metric":{"__name__":"used","gpu":"1"},"values":[[1700000000.5,"12"],[1700000015.5,"NaN"],[1700000030.5,"1.5e3"]]},
      {"metric":{},"values":[]}]},"warnings":["partial"]})",
                          kAll, got.sink, got.lacks));
  EXPECT_EQ(got.lacks, "partial");
  ASSERT_EQ(got.series.size(), 2U);
  ASSERT_EQ(got.series[0].second.size(), 3U);
  EXPECT_EQ(got.series[0].second[0].time_ms, 1700000000500);
  EXPECT_EQ(got.series[0].second[2].value, 1500);
  EXPECT_TRUE(std::isnan(got.series[0].second[1].value));
}

TEST(Matrix, AnErrorOfTheServerIsItsWords) {
  Got got;
  const Status read =
      read_matrix(R"({"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points"})",
                  kAll, got.sink, got.lacks);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "the server reports: exceeded maximum resolution of 11,000 points");
  const Status half = read_matrix(R"({"status":"success","data":{"resu)", kAll, got.sink, got.lacks);
  ASSERT_FALSE(half);
  EXPECT_NE(half.error().message.find("not what Prometheus's API returns"), std::string::npos);
  EXPECT_FALSE(read_matrix("<html>", kAll, got.sink, got.lacks));
}

TEST(Names, AListOfLabelValues) {
  std::string lacks;
  const auto names = read_names(R"({"status":"success","data":["node1","node 2",""]})", lacks);
  ASSERT_TRUE(names);
  EXPECT_EQ(*names, (std::vector<std::string>{"node1", "node 2", ""}));
  EXPECT_FALSE(read_names(R"({"status":"success","data":[1]})", lacks));
  EXPECT_FALSE(read_names("", lacks));
}

TEST(Answers, AServerSaysWhatTheyLack) {
  const auto lacks = [](const std::string& more) {
    std::string out;
    EXPECT_TRUE(read_series(R"({"status":"success",)" + more + R"("data":[]})", out)) << more;
    return out;
  };
  EXPECT_EQ(lacks(""), "");
  EXPECT_EQ(lacks(R"("warnings":null,"infos":["x"],)"), "");
  EXPECT_EQ(lacks(R"("warnings":["store a is away","store b is away","store a is away"],)"),
            "store a is away; store b is away");
  EXPECT_EQ(lacks(R"("isPartial":false,)"), "");
  EXPECT_EQ(lacks(R"("isPartial":true,)"), "part of its storage did not answer");
}

}  // namespace

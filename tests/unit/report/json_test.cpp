#include "report/json.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/verdict_fields.hpp"
#include "report/report.hpp"
#include "sample_view.hpp"

namespace vramtrack {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <class Json>
std::vector<Json> lines(const View& view) {
  std::istringstream in(find_report("json")->render(view, {}));
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  return out;
}

std::vector<std::string> keys(const ordered_json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

/// The keys of a line, as core/verdict_fields.hpp arranges them.
template <class... Objects>
std::vector<std::string> declared(std::uint8_t Positions::*line) {
  std::vector<std::string> out;
  for_each_in_line(
      line,
      [&](const auto& field, const auto& object) {
        using T = std::remove_cvref_t<decltype(field.of(object))>;
        out.emplace_back(field.name);
        if (std::same_as<T, Timestamp> || std::same_as<T, std::optional<Timestamp>>)
          out.push_back(std::string(field.name) + "_s");
      },
      Objects{}...);
  return out;
}

using ::testing::ElementsAre;

// docs/formats/analysis.md: the fields and their order are a contract.
TEST(JsonReport, FieldsAreTheDocumentedOnes) {
  const auto rows = lines<ordered_json>(sample_view());
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(keys(rows[0]), ElementsAre("schema", "files", "series", "capacity_bytes", "samples", "skipped_lines",
                                         "start", "end", "duration_s", "interval_s", "leaked", "verdict", "told",
                                         "alerts", "suspicions", "runs", "warnings", "paging"));
  EXPECT_THAT(keys(rows[0]["series"]), ElementsAre("metric", "device", "index", "name", "pid", "command"));
  // FieldDocuments compares the document's tables of these with the declared fields.
  EXPECT_EQ(keys(rows[0]["verdict"]), (declared<Finding, Verdict>(&Positions::verdict)));
  EXPECT_EQ(keys(rows[0]["verdict"]["dissent"][0]), declared<Finding>(&Positions::dissent));
  EXPECT_EQ(keys(rows[0]["verdict"]["suspect"]), declared<Suspect>(&Positions::suspect));
  std::vector<std::string> of_alert = declared<Finding, Alert>(&Positions::alert);
  of_alert.emplace_back("told");
  EXPECT_EQ(keys(rows[0]["alerts"][0]), of_alert);
}

TEST(JsonReport, ValuesOfALeak) {
  const json row = lines<json>(sample_view())[0];
  EXPECT_EQ(row["schema"], "vramtrack.analysis.v1");
  EXPECT_EQ(row["files"], json({"gpu.csv"}));
  EXPECT_EQ(row["series"]["metric"], "device_used");
  EXPECT_EQ(row["series"]["index"], 0);
  EXPECT_TRUE(row["series"]["pid"].is_null());
  EXPECT_EQ(row["capacity_bytes"], 24 * kGiB);
  EXPECT_EQ(row["skipped_lines"], 2);
  EXPECT_EQ(row["start"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(row["duration_s"], 7199);
  EXPECT_EQ(row["verdict"]["leak"], true);
  EXPECT_TRUE(row["verdict"]["spike"].is_null());
  EXPECT_EQ(row["verdict"]["onset_s"], 600);
  EXPECT_EQ(row["verdict"]["growth_bytes_per_s"]["mid"], 873813);
  EXPECT_EQ(row["verdict"]["oom_in_s"]["high"], 3900);
  EXPECT_EQ(row["verdict"]["dissent"][0]["detector"], "linear_trend");
  EXPECT_EQ(row["alerts"][0]["raised_s"], 1500);
  EXPECT_TRUE(row["alerts"][0]["cleared"].is_null());
  EXPECT_EQ(row["alerts"][0]["ended"], "standing");
}

TEST(JsonReport, WhatIsUnknownIsNull) {
  View v = sample_view();
  v.clock_is_relative = true;
  v.series[0].device.capacity_bytes.reset();
  v.series[0].device.index.reset();
  v.series[0].device.name.clear();
  v.series[0].verdict.finding.oom_in_s.reset();
  v.series[0].verdict.suspect = Suspect{0, 0, "", 0.9};
  v.series[0].verdict.framework.clear();
  const json row = lines<json>(v)[0];
  EXPECT_TRUE(row["start"].is_null());
  EXPECT_TRUE(row["verdict"]["onset"].is_null());
  EXPECT_EQ(row["verdict"]["onset_s"], 600);
  EXPECT_TRUE(row["alerts"][0]["raised"].is_null());
  for (const char* key : {"capacity_bytes"}) EXPECT_TRUE(row[key].is_null()) << key;
  for (const char* key : {"index", "name", "command"}) EXPECT_TRUE(row["series"][key].is_null()) << key;
  for (const char* key : {"oom_in_s", "framework"}) EXPECT_TRUE(row["verdict"][key].is_null()) << key;
  EXPECT_TRUE(row["verdict"]["suspect"]["pid"].is_null());
}

TEST(JsonReport, AnotherMachineIsNamed) {
  View v = sample_view();
  for (SeriesView& s : v.series) s.key.host = "node7";
  const auto rows = lines<ordered_json>(v);
  EXPECT_THAT(keys(rows[0]["series"]), ElementsAre("metric", "device", "index", "name", "pid", "command", "host"));
  EXPECT_EQ(rows[1]["series"]["host"], "node7");
}

TEST(JsonReport, NumbersAreFiniteAndTextIsUtf8WhateverComesIn) {
  View v = sample_view();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  v.series[0].verdict.finding.confidence = kNan;
  v.series[0].verdict.finding.r_squared = kInf;
  v.series[0].verdict.finding.growth_bytes_per_s = {-kInf, kNan, 1e-320};
  v.series[0].verdict.suspect->command = "caf\xe9 \x01\n";
  const auto rows = lines<json>(v);  // parses, one object per line
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["verdict"]["confidence"], 0);
  EXPECT_TRUE(rows[0]["verdict"]["r_squared"].is_number());
}

TEST(JsonReport, AlertLine) {
  const View v = sample_view();
  const json row = json::parse(alert_json(v, v.series[0], v.series[0].alerts[0], AlertNews::raised));
  EXPECT_EQ(row["schema"], "vramtrack.alert.v1");
  EXPECT_EQ(row["event"], "raised");
  EXPECT_EQ(row["alert"]["severity"], "critical");
  EXPECT_EQ(row["because"], v.series[0].alerts[0].finding.because);
}

TEST(JsonReport, EscalationLine) {
  View v = sample_view();
  v.series[0].verdict.finding.because = "20 min are left";
  const json row = json::parse(alert_json(v, v.series[0], v.series[0].alerts[0], AlertNews::escalated));
  EXPECT_EQ(row["event"], "escalated");
  EXPECT_EQ(row["because"], "20 min are left");
}

TEST(JsonReport, EventLine) {
  Event e;
  e.time = at(0);
  e.kind = Event::Kind::xid;
  e.device_id = "GPU-1";
  e.xid = 79;
  e.text = "XID 79";
  const json row = json::parse(event_json(e, false));
  EXPECT_EQ(row["schema"], "vramtrack.event.v1");
  EXPECT_EQ(row["event"], "xid");
  EXPECT_EQ(row["code"], 79);
  EXPECT_EQ(row["time"], "2026-01-02T03:04:05Z");
}

}  // namespace
}  // namespace vramtrack

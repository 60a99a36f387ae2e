// The formats of a synthetic period against goldens (VRAMTRACK_UPDATE=1 rewrites tests/golden/report), and hostile
// names in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "golden.hpp"
#include "period/document.hpp"
#include "period_fixture.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;
using testing::Not;
using json = nlohmann::json;

TEST(ReportForms, Text) {
  expect_golden("report/example.txt", report_text(example_report(), false));
}
TEST(ReportForms, Markdown) {
  expect_golden("report/example.md", report_markdown(example_report()));
}
TEST(ReportForms, Json) {
  expect_golden("report/example.json", report_json(example_report()));
}
TEST(ReportForms, Html) {
  expect_golden("report/example.html", report_html(example_report()));
}

TEST(ReportForms, AnAlertCountsTheProcessesThatReportItAndNotTheirSeries) {
  PeriodReport r = example_report("train");
  PeriodSeries allocated = r.series[2];
  allocated.view.key.metric = Metric::allocator_allocated;
  PeriodSeries rest = r.series[0];
  rest.view.key.metric = Metric::device_unattributed;
  r.series.push_back(allocated);
  r.series.push_back(rest);
  reckon(r);
  const std::string text = report_text(r, false);
  const std::size_t begin = text.find("\nAlerts");
  const std::string alerts = text.substr(begin, text.find("\nAt risk") - begin);
  EXPECT_THAT(alerts, HasSubstr("GPU 0 NVIDIA A10, pid 4242 train"));
  EXPECT_THAT(alerts, Not(HasSubstr("processes")));
  EXPECT_THAT(alerts, Not(HasSubstr("pid 0")));
}

TEST(ReportForms, TheWallOfAProcessIsALineOfItsDeviceAndOneInItsChart) {
  PeriodReport r = example_report("train");
  r.series[2].view.wall = MemoryWall{20 * kGiB, r.series[2].view.used_bytes, 1, 2.0 * 1048576, "dmem.max of <pod>"};
  const std::string words = "pid 4242 train (alice): 20.0 GiB, by dmem.max of ";
  EXPECT_THAT(report_text(r, false), HasSubstr(words + "<pod>; "));
  EXPECT_THAT(report_markdown(r), HasSubstr(words));
  const std::string page = report_html(r);
  EXPECT_THAT(page, HasSubstr(words + "&lt;pod&gt;; "));
  EXPECT_THAT(page, HasSubstr("<line class=\"wall\""));
  EXPECT_THAT(page, HasSubstr("dmem.max of &lt;pod&gt;"));
  r.series[2].view.wall->bytes = 40 * kGiB;
  EXPECT_THAT(report_html(r), Not(HasSubstr("<line class=\"wall\""))) << "the GPU ends it";
}

TEST(ReportForms, ColoursAreOnlyWhereAskedFor) {
  EXPECT_THAT(report_text(example_report(), true), HasSubstr("\033[1;31m"));
  EXPECT_THAT(report_text(example_report(), false), Not(HasSubstr("\033")));
}

const std::vector<std::string>& hostile_names() {
  static const std::vector<std::string> names = {
      "</title><script>alert(1)</script>",
      "<img src=x onerror=alert(1)> | a | b |\n## heading",
      "\"'><svg/onload=alert(1)>",
      "[link](http://evil.example) ![x](http://evil.example/x.png) @everyone www.evil.example http://evil.example",
      "\033[31mred\033[0m \xff\xfe broken \x01",
      "]]>--><!--",
      "=HYPERLINK(\"http://evil.example\")",
  };
  return names;
}

/// The same hostile text in every place for foreign text.
PeriodReport hostile_report(const std::string& name) {
  PeriodReport r = example_report(name);
  r.files = {name};
  r.warnings = {name};
  r.notices = {{kBegin, name}};
  r.acts = {{kBegin, name, name, name, name, name, name, false}};
  for (PeriodSeries& s : r.series) {
    s.view.device.name = name;
    s.view.verdict.finding.because = name;
    if (s.view.process) s.view.process->user = s.view.process->container = s.view.process->slurm_job = name;
  }
  for (PeriodAlert& a : r.series[0].alerts) a.alert.finding.because = name;
  reckon(r);
  return r;
}

/// `html` without the embedded data, which base64 makes harmless.
std::string without_data(const std::string& html) {
  static const std::string kMark = "base64,";
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = html.find(kMark); at != std::string::npos; at = html.find(kMark, done)) {
    out += html.substr(done, at - done);
    done = html.find('"', at);
  }
  return out + html.substr(done);
}

TEST(ReportForms, HostileNamesAreTextInThePage) {
  // Every tag on the page is one of ours; foreign text cannot add one.
  const std::regex tag("<(/?[a-zA-Z!][^ >]*)");
  std::set<std::string> known;
  const std::string plain = without_data(report_html(example_report()));
  for (auto it = std::sregex_iterator(plain.begin(), plain.end(), tag); it != std::sregex_iterator(); ++it)
    known.insert((*it)[1]);
  EXPECT_EQ(known.count("script"), 0U);
  for (const std::string& name : hostile_names()) {
    const std::string page = without_data(report_html(hostile_report(name)));
    for (auto it = std::sregex_iterator(page.begin(), page.end(), tag); it != std::sregex_iterator(); ++it)
      EXPECT_EQ(known.count((*it)[1]), 1U) << (*it)[1] << " of " << name;
    EXPECT_THAT(page, Not(HasSubstr("\033")));
  }
}

TEST(ReportForms, ThePageRefersToNothingOutsideItself) {
  const std::string page = without_data(report_html(example_report()));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
}

TEST(ReportForms, HostileNamesAreTextInMarkdown) {
  for (const std::string& name : hostile_names()) {
    const std::string text = report_markdown(hostile_report(name));
    EXPECT_THAT(text, Not(HasSubstr("<script"))) << name;
    EXPECT_THAT(text, Not(HasSubstr("<img"))) << name;
    EXPECT_FALSE(std::regex_search(text, std::regex("[^\\\\]\\]\\("))) << name;
    EXPECT_THAT(text, Not(HasSubstr("www."))) << name;
    EXPECT_THAT(text, Not(HasSubstr("://"))) << name;
    EXPECT_THAT(text, Not(HasSubstr("@every"))) << name;
    EXPECT_THAT(text, Not(HasSubstr("\n## heading"))) << name;
    // As many bars in each line of a table as in its header.
    std::istringstream lines(text);
    std::size_t bars = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("|")) {
        bars = 0;
        continue;
      }
      const std::string unescaped = std::regex_replace(line, std::regex("\\\\."), "");
      const auto count = static_cast<std::size_t>(std::count(unescaped.begin(), unescaped.end(), '|'));
      if (bars == 0) bars = count;
      EXPECT_EQ(count, bars) << line;
    }
  }
}

TEST(ReportForms, HostileNamesAreTextOnATerminalAndInJson) {
  for (const std::string& name : hostile_names()) {
    const std::string text = report_text(hostile_report(name), false);
    EXPECT_THAT(text, Not(HasSubstr("\033")));
    EXPECT_THAT(text, Not(HasSubstr("\x01")));
    const json parsed = json::parse(report_json(hostile_report(name)), nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << name;
  }
}

TEST(ReportForms, TheDataInThePageIsTheJsonAndTheCsv) {
  const std::string page = report_html(example_report());
  std::vector<std::string> data;
  const std::string mark = "base64,";
  for (std::size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    const std::string text = page.substr(begin, page.find('"', begin) - begin);
    std::string decoded;
    std::uint32_t bits = 0;
    int have = 0;
    for (const char c : text) {
      if (c == '=') break;
      const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
      bits = bits << 6U | static_cast<std::uint32_t>(digits.find(c));
      have += 6;
      if (have < 8) continue;
      have -= 8;
      decoded += static_cast<char>(bits >> static_cast<unsigned>(have) & 255U);
    }
    data.push_back(decoded);
  }
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data[0], report_json(example_report()));
  EXPECT_EQ(data[1], report_csv(example_report()));
}

TEST(ReportForms, JsonOffsetsAreFromTheReportsBegin) {
  const json parsed = json::parse(report_json(example_report()));
  EXPECT_EQ(parsed["series"][2]["series"]["pid"], 4242);
  EXPECT_EQ(parsed["series"][2]["history"][0][0], 300);
  EXPECT_EQ(parsed["series"][0]["alerts"][0]["raised_s"], 1200);
  EXPECT_EQ(parsed["money"]["jobs"][0]["id"], "1234");
}

TEST(ReportForms, OfManyProcessesOnlyTheGreatestAreInTheData) {
  PeriodReport r = example_report();
  for (std::uint32_t pid = 100; pid < 150; ++pid)
    r.series.push_back(process_series(0, pid, "worker", minute_points(60, [](int) { return 1e9; })));
  reckon(r);
  const json parsed = json::parse(report_json(r));
  int with_history = 0;
  for (const json& s : parsed["series"]) with_history += s["history"].is_null() ? 0 : 1;
  EXPECT_EQ(with_history, 4 + 8);
  EXPECT_THAT(report_text(r, false), HasSubstr("more processes without a sign of a leak"));
}

TEST(ReportForms, WhatIsNotKnownIsSaidWithItsReason) {
  PeriodReport r = example_report();
  EXPECT_THAT(report_text(r, false), HasSubstr("Utilisation was not recorded"));
  r.is_log = false;
  EXPECT_THAT(report_text(r, false), HasSubstr("Utilisation was not recorded"));
  std::erase_if(r.series, [](const PeriodSeries& s) { return s.view.key.pid != 0; });
  reckon(r);
  EXPECT_THAT(report_text(r, false), HasSubstr("processes were not recorded, so the work at risk is unknown\n"));
  r.is_log = true;
  EXPECT_THAT(report_text(r, false),
              HasSubstr("processes were not recorded, so the work at risk is unknown; add a log of processes\n"));
}

std::string report_title(const PeriodReport& report) {
  const std::string title = report_document(report).title;
  return title.substr(title.find(": ") + 2);
}

TEST(ReportForms, TheTitleSaysNoLeakOnlyWhereNothingGrows) {
  PeriodReport r;
  r.last = minutes_in(60);
  r.series.push_back(device_series(0, minute_points(60, [](int) { return 8e9; })));
  r.series[0].has_verdict = true;
  EXPECT_EQ(report_title(r), "no leak");
  Finding& f = r.series[0].view.verdict.finding;
  f.state = State::growing;
  f.growth_bytes_per_s = {1e6, 2e6, 3e6};
  EXPECT_THAT(report_title(r), HasSubstr("GPU 0 grows"));
  f.stage = Stage::suspected;
  EXPECT_THAT(report_title(r), HasSubstr("suspected"));
  f = {};
  f.state = State::steady;
  vramtrack::Run run;
  run.begin = minutes_in(0);
  run.end = minutes_in(20);
  run.how = EndKind::out_of_memory;
  r.series[0].view.runs = {run};
  EXPECT_EQ(report_title(r), "GPU 0 ran out of memory");
  r.series.push_back(device_series(0, minute_points(60, [](int m) { return 8e9 + 1e7 * m; })));
  r.series[1].view.key.metric = Metric::allocator_allocated;
  r.series[1].has_verdict = true;
  r.series[1].view.verdict.finding.leak = true;
  EXPECT_THAT(report_title(r), HasSubstr("allocator leaks"));
}

TEST(ReportForms, AnEmptyPeriodIsSaidAndNothingBreaks) {
  PeriodReport r;
  reckon(r);
  EXPECT_EQ(report_title(r), "no samples");
  EXPECT_THAT(report_markdown(r), HasSubstr("no samples"));
  EXPECT_FALSE(json::parse(report_json(r), nullptr, false).is_discarded());
  EXPECT_THAT(report_html(r), HasSubstr("</html>"));
}

TEST(ReportForms, TimesWithoutADateAreOffsets) {
  PeriodReport r = example_report();
  r.clock_is_relative = true;
  EXPECT_THAT(report_text(r, false), HasSubstr("after the start"));
  EXPECT_EQ(json::parse(report_json(r))["start"], json());
  EXPECT_THAT(report_csv(r), HasSubstr("offset_s,"));
}

}  // namespace
}  // namespace vramtrack

// The parts below the screens: grid, timeline, accounting, rows, keys, themes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "paths.hpp"
#include "report/accounting.hpp"
#include "top/chart.hpp"
#include "top/draw.hpp"
#include "top/gauges.hpp"
#include "top/keys.hpp"
#include "top/rows.hpp"
#include "top/terminal.hpp"
#include "top/theme.hpp"
#include "views.hpp"

namespace vramtrack::top {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Screen, CutsWithASignAndCountsColumns) {
  Screen s(10, 1);
  EXPECT_EQ(s.put(0, 0, 5, "abcdefgh"), 5);
  EXPECT_EQ(s.text(), "abcd…\n");
  Screen wide(10, 1);
  EXPECT_EQ(wide.put(0, 0, 4, "日本語"), 3);  // half a character is not shown
  EXPECT_EQ(wide.text(), "日…\n");
  EXPECT_EQ(columns_of("日本語"), 6);
}

TEST(Screen, CountsWhatLeavesItsPlace) {
  Screen s(4, 1);
  s.put(2, 0, 9, "abc");
  EXPECT_EQ(s.outside(), 1);
  s.put(2, 0, 1, "x");
  EXPECT_EQ(s.overwritten(), 1);
  s.clear({0, 0, 4, 1});
  s.put(2, 0, 1, "x");
  EXPECT_EQ(s.overwritten(), 1);
}

TEST(Screen, BrokenBytesAndControlsBecomeHarmless) {
  EXPECT_EQ(decode("a\xff\xe2\x82z"), U"a\ufffd\ufffdz");
  Screen s(20, 1);
  s.put(0, 0, 20, "a\033[31m\tb\u202ec");
  EXPECT_EQ(s.text(), "a[31mbc\n");
}

TEST(Timeline, MergesByTwoWhenFullAndKeepsExtremes) {
  SeriesTimeline line(4);
  for (int i = 0; i < 9; ++i) line.add(Timestamp{std::chrono::seconds{i}}, i == 3 ? 100 : i);
  ASSERT_LE(line.points().size(), 4U);
  double high = 0;
  std::uint64_t samples = 0;
  for (const Point& p : line.points()) {
    high = std::max(high, p.max_bytes);
    samples += p.samples;
  }
  EXPECT_EQ(high, 100);  // a spike of one sample stays
  EXPECT_EQ(samples, 9U);
  EXPECT_EQ(line.points().front().from, Timestamp{});
  line.add(Timestamp{std::chrono::seconds{2}}, 7);  // older: ignored
  EXPECT_EQ(line.points().back().to, Timestamp{std::chrono::seconds{8}});
}

TEST(Timeline, ResamplesToColumnsOfEqualTime) {
  std::vector<Point> points;
  for (int i = 0; i < 10; ++i) {
    const Timestamp t{std::chrono::seconds{i}};
    points.push_back({t, t, 1.0 * i, 1.0 * i, 1.0 * i, 1});
  }
  const auto two = resample(points, points[2].from, points[8].from, 2);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].min_bytes, 2);
  EXPECT_EQ(two[0].mean_bytes, 3);
  EXPECT_EQ(two[0].max_bytes, 4);
  EXPECT_EQ(two[1].samples, 3U);
  EXPECT_TRUE(resample(points, points[5].from, points[5].from, 9).empty());
}

TEST(Chart, FillsFromTheBottomToTheValue) {
  Screen s(4, 2);
  std::vector<Point> points;
  for (int i = 0; i < 8; ++i) {
    const Timestamp t{std::chrono::seconds{i}};
    points.push_back({t, t, 4, 4, 4, 1});
  }
  draw_history(s, {0, 0, 4, 2}, {points.front().from, points.back().from + std::chrono::seconds{1}, 0, 7}, points);
  EXPECT_EQ(s.text(), "⣀⣀⣀⣀\n⣿⣿⣿⣿\n");  // 4 of 0..7: dot row 4 of 0..7
}

TEST(Chart, LeavesAGapWhereNothingWasSeen) {
  Screen s(10, 1);
  std::vector<Point> points;
  for (const int at : {0, 1, 2, 3, 40, 41, 42, 43}) {
    const Timestamp t{std::chrono::seconds{at}};
    points.push_back({t, t, 1, 1, 1, 1});
  }
  draw_history(s, {0, 0, 10, 1}, {points.front().from, points.back().from, 0, 1}, points);
  EXPECT_EQ(s.at(5, 0).code, U' ');
  EXPECT_NE(s.at(0, 0).code, U' ');
  EXPECT_NE(s.at(9, 0).code, U' ');
}

TEST(Chart, TheTrendOverThePastIsALine) {
  Screen s(24 + 9, 6);
  Chart chart;
  const Timestamp begin{};
  const Timestamp end = begin + std::chrono::seconds{48};
  chart.plane = {begin, end, 0, 19};
  chart.points.push_back({begin, end, 12, 12, 12, 1});
  chart.trend = TrendLine{begin, end, 8, 8};
  draw_chart(s, {0, 0, s.width(), s.height()}, chart);
  for (int x = 9; x < s.width(); ++x) {
    EXPECT_EQ(s.at(x, 1).role, Role::history);
    EXPECT_EQ(s.at(x, 2).code, U'⣀') << "one dot high";
    EXPECT_EQ(s.at(x, 2).role, Role::trend);
    EXPECT_EQ(s.at(x, 3).code, U'⣿') << "the past goes on below";
    EXPECT_EQ(s.at(x, 3).role, Role::history);
  }
}

TEST(Accounting, NamesTheRest) {
  View view;
  view.series = {device(0, 10.5), process(0, 1, 10)};
  EXPECT_EQ(account(view, {"GPU-0", ""}).rest, Accounting::Rest::driver);
  view.series[1].used_bytes = static_cast<std::uint64_t>(4 * kGiB);
  EXPECT_EQ(account(view, {"GPU-0", ""}).rest, Accounting::Rest::unattributed);
  view.series.push_back(process(0, 2, 6.5));
  view.series.back().ended = true;
  EXPECT_EQ(account(view, {"GPU-0", ""}).rest, Accounting::Rest::dead);
  view.series.back().ended = false;
  EXPECT_EQ(account(view, {"GPU-0", ""}).rest, Accounting::Rest::none);
  view.series.push_back(process(0, 3, 1));
  const Accounting over = account(view, {"GPU-0", ""});
  EXPECT_EQ(over.rest, Accounting::Rest::too_much);
  EXPECT_NEAR(over.rest_bytes, kGiB, 1);
  EXPECT_FALSE(account(view, {"GPU-9", ""}).used_bytes);  // missing is not zero
}

TEST(Accounting, AGpuHasTheProcessesOfItsInstances) {
  View view;
  SeriesView instance = device(1, 4);
  instance.device.parent_id = "GPU-0";
  SeriesView tenant = process(1, 7, 4);
  tenant.device.parent_id = "GPU-0";
  view.series = {device(0, 4.3), instance, tenant};
  EXPECT_EQ(accounting_words(account(view, {"GPU-0", ""}), kSecondsAndBytes),
            "1 process 4.0 GiB + 307 MiB driver = 4.3 GiB used");
}

std::vector<std::uint32_t> pids(const Model& m) {
  std::vector<std::uint32_t> out;
  for (const SeriesView* s : processes(m)) out.push_back(s->key.pid);
  return out;
}

TEST(Rows, SortAndFilter) {
  View view;
  view.series = {device(0, 30), process(0, 1, 5, "python a.py", "ada"), process(0, 2, 9, "python b.py", "bob"),
                 leaking(process(0, 3, 1, "python c.py", "carol", "JAX"))};
  Model m = model_of(view);
  EXPECT_THAT(pids(m), ElementsAre(3, 2, 1));  // leaking processes first
  m.ui.sort = Sort::memory;
  EXPECT_THAT(pids(m), ElementsAre(2, 1, 3));
  m.ui.reversed = true;
  EXPECT_THAT(pids(m), ElementsAre(3, 1, 2));
  m.ui.reversed = false;
  m.ui.sort = Sort::user;
  EXPECT_THAT(pids(m), ElementsAre(1, 2, 3));
  m.ui.filter = "PYTHON jax";
  EXPECT_THAT(pids(m), ElementsAre(3));
  m.ui.filter = "nobody";
  EXPECT_TRUE(pids(m).empty());
}

TEST(Rows, StartIsOfTheBootElseAnUpperBound) {
  Model m = model_of(one_gpu());
  const SeriesView& p = m.view->series[2];
  EXPECT_TRUE(started(m, p)->at_most);
  m.boot = ago(10000);
  const auto exact = started(m, p);
  EXPECT_FALSE(exact->at_most);
  EXPECT_NEAR(seconds_between(*m.boot, exact->time), 4242, 1);  // 424200 ticks of 1/100 s
}

TEST(Rows, AnAcknowledgedAlertIsNotOpen) {
  Model m = model_of(one_gpu());
  EXPECT_EQ(open_alerts(m), 1U) << "the device's and its process's are one leak";
  m.acknowledged.insert({m.view->series[0].key, m.view->series[0].alerts[0].raised});
  EXPECT_EQ(open_alerts(m), 0U);
}

TEST(Rows, TheAlertsOfADeviceAndItsProcessAreOneAndNameTheProcess) {
  const Model m = model_of(one_gpu());
  ASSERT_EQ(alerts(m).size(), 1U);
  EXPECT_EQ(alerts(m)[0].key.pid, 0U);
  EXPECT_THAT(alerts(m)[0].who, testing::HasSubstr("pid 4242"));
  ASSERT_EQ(alerts(m)[0].also.size(), 1U);
  EXPECT_EQ(alerts(m)[0].also[0].key.pid, 4242U);
  EXPECT_EQ(every_alert(m).size(), 2U);
}

TEST(Keys, EveryPageOfTheTableHasItsKeyAndALineOfHelp) {
  struct Row {
    Page page;
    char32_t key;
    std::string_view words;
  };
  constexpr Row kRows[] = {
#define VRAMTRACK_PAGE(name, key, keys, help) {Page::name, key, help},
#include "top/pages.def"
#undef VRAMTRACK_PAGE
  };
  for (const Row& row : kRows) {
    Model m = model_of(eight_gpus());
    handle(m, row.key != 0 ? Key{row.key} : kEnter);
    EXPECT_EQ(m.ui.page, row.page) << row.words;
    handle(m, kEscape);
    EXPECT_EQ(m.ui.page, Page::overview) << row.words;
    m.ui.help = true;
    Screen s(200, 60);
    draw(s, m);
    EXPECT_NE(s.text().find(row.words), std::string::npos) << row.words;
  }
}

/// The first cell of `text` on the drawn screen.
Pointer over(const Screen& screen, const std::string& text, Pointer::Did did = Pointer::Did::press) {
  std::istringstream rows(screen.text());
  int y = 0;
  for (std::string row; std::getline(rows, row); ++y)
    if (const std::size_t at = row.find(text); at != std::string::npos)
      return {did, columns_of(std::string_view(row).substr(0, at)), y};
  ADD_FAILURE() << text << " is not on the screen:\n" << screen.text();
  return {};
}

Request click(Model& m, const std::string& text, Pointer::Did did = Pointer::Did::press) {
  Screen screen(200, 50);
  draw(screen, m);
  return handle(m, over(screen, text, did), screen);
}

TEST(Mouse, AClickSelectsAndADoubleClickOpens) {
  Model m = model_of(eight_gpus());
  click(m, "GPU 5");
  EXPECT_EQ(m.ui.device_id, "GPU-5");
  EXPECT_EQ(m.ui.page, Page::overview);
  click(m, "4203 dan");
  ASSERT_TRUE(m.ui.process);
  EXPECT_EQ(m.ui.process->pid, 4203U);
  EXPECT_EQ(m.ui.device_id, "GPU-2");
  click(m, "4203 dan", Pointer::Did::double_press);
  EXPECT_EQ(m.ui.page, Page::detail);
  EXPECT_EQ(m.ui.detail.pid, 4203U);
  click(m, "Esc back");
  EXPECT_EQ(m.ui.page, Page::overview);
  click(m, "A alerts");
  EXPECT_EQ(m.ui.page, Page::alerts);
  EXPECT_TRUE(click(m, "q quit").quit);
}

TEST(Mouse, AHeadSortsAndAgainReverses) {
  Model m = model_of(eight_gpus());
  click(m, "MiB/min STATE");
  EXPECT_EQ(m.ui.sort, Sort::growth);
  EXPECT_FALSE(m.ui.reversed);
  click(m, "MiB/min STATE");
  EXPECT_TRUE(m.ui.reversed);
  click(m, "CPU%");
  EXPECT_EQ(m.ui.sort, Sort::cpu);
  EXPECT_FALSE(m.ui.reversed);
}

TEST(Mouse, TheWheelMovesAndNothingIsSentByAClick) {
  Model m = model_of(eight_gpus());
  const Screen empty(200, 50);
  handle(m, Pointer{Pointer::Did::wheel_down, 3, 40}, empty);
  EXPECT_TRUE(m.ui.process);
  handle(m, Pointer{Pointer::Did::wheel_up, 3, 40}, empty);
  EXPECT_FALSE(m.ui.process);
  m.ui.target = SignalTarget{1, "ada", "python", "08:00"};
  const Request request = click(m, "send INT");
  EXPECT_FALSE(request.send_signal || request.drop_signal || request.quit);
  EXPECT_TRUE(m.ui.target);
  m.ui.target.reset();
  m.ui.help = true;
  click(m, "Keys and words");
  EXPECT_FALSE(m.ui.help);
  EXPECT_TRUE(m.ui.mouse);
  handle(m, U'm');
  EXPECT_FALSE(m.ui.mouse) << "the terminal has it again";
}

TEST(Only, UsersPidsAndGpus) {
  Model m = model_of(eight_gpus());
  EXPECT_EQ(processes(m).size(), 64U);
  m.only.users = {"carol"};
  EXPECT_EQ(processes(m).size(), 16U);
  m.only.pids = {4202, 4303};
  ASSERT_EQ(processes(m).size(), 1U);
  EXPECT_EQ(processes(m)[0]->key.pid, 4202U);
  // A GPU's memory belongs to all processes, whichever are listed.
  EXPECT_EQ(account(*m.view, {"GPU-2", ""}).processes, 8U);
  const auto all = m.view;
  EXPECT_EQ(devices(*narrowed(all, {"3", "GPU-7"})).size(), 2U);
  EXPECT_EQ(devices(*narrowed(all, {"GPU"})).size(), 0U) << "what all UUIDs begin with names none";
  EXPECT_EQ(narrowed(all, {}), all);
  View mig;
  SeriesView instance = device(0, 5);
  instance.key.device_id = instance.device.id = "MIG-1";
  instance.device.index.reset();
  instance.device.parent_id = "GPU-0";
  mig.series = {device(0, 10), device(1, 10), instance};
  EXPECT_EQ(devices(*narrowed(std::make_shared<const View>(mig), {"0"})).size(), 2U);
}

TEST(Only, AnEmptyListSaysWhy) {
  const auto text = [](const Model& m) {
    Screen screen(120, 40);
    draw(screen, m);
    return screen.text();
  };
  Model m = model_of(eight_gpus());
  m.only.users = {"nobody"};
  EXPECT_THAT(text(m), testing::HasSubstr("no process of user nobody is visible on these GPUs"));
  m.only.gpus = {"9"};
  m.known_gpus = "GPU 0, GPU 1";
  m.view = narrowed(m.view, m.only.gpus);
  EXPECT_THAT(text(m), testing::HasSubstr("no GPU is named 9; there are: GPU 0, GPU 1"));
}

TEST(Gauges, WhatIsNotKnownIsADashAndNeverZero) {
  SeriesView s = device(0, 10);
  EXPECT_FALSE(has_gauges(s));
  s.utilisation_ratio = 0;
  EXPECT_EQ(percent_or_dash(s.utilisation_ratio), "0 %");
  EXPECT_EQ(percent_or_dash(s.gauges.fan_ratio), "-");
  EXPECT_EQ(temperature_words(s), "-");
  EXPECT_EQ(power_words(s.gauges), "-");
  s.gauges.power_watts = 312.4;
  EXPECT_EQ(power_words(s.gauges), "312 W");
  s.gauges.power_limit_watts = 450;
  EXPECT_EQ(power_words(s.gauges), "312/450 W");
  EXPECT_EQ(percent_figure(std::nan("")), "-");
}

std::string file(const std::string& path) {
  std::ifstream in(source_dir() + "/" + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Keys, OfTheDocumentsAreInTheHelpOfTopAndOfThePage) {
  Model m = model_of(one_gpu());
  m.ui.help = true;
  Screen screen(200, 90);
  draw(screen, m);
  const std::string help = screen.text();
  const std::string page = file("page/src/index.html");
  std::istringstream documents(file("docs/top.md"));
  const std::regex row(R"(\| ((?:`[^`]+`[, to]*)+) \| (.*) \|)");
  const std::regex key("`([^`]+)`");
  int keys = 0;
  bool in_keys = false;
  for (std::string line; std::getline(documents, line);) {
    if (line.rfind("## ", 0) == 0) in_keys = line == "## Keys";
    std::smatch found;
    if (!in_keys || !std::regex_match(line, found, row)) continue;
    const std::string named = found[1];
    const bool top_only = found[2].str().find("(`top`)") != std::string::npos || named == "`Tab`";
    for (std::sregex_iterator it(named.begin(), named.end(), key), end; it != end; ++it, ++keys) {
      const std::string one = (*it)[1];
      EXPECT_THAT(help, HasSubstr(one)) << "in top's help";
      if (!top_only) {
        EXPECT_THAT(page, HasSubstr("<kbd>" + one + "</kbd>")) << "in the page's help";
      }
    }
  }
  EXPECT_GE(keys, 30);
}

TEST(Keys, ThePagesAndBack) {
  Model m = model_of(eight_gpus());
  handle(m, U'P');
  EXPECT_EQ(m.ui.page, Page::predict);
  handle(m, kTab);
  handle(m, U'd');
  EXPECT_EQ(m.ui.page, Page::detail);
  EXPECT_EQ(m.ui.detail.device_id, "GPU-1");
  handle(m, kEscape);
  EXPECT_EQ(m.ui.page, Page::predict);
  handle(m, kEscape);
  EXPECT_EQ(m.ui.page, Page::overview);
  handle(m, U'3');
  EXPECT_EQ(m.ui.device_id, "GPU-3");
  handle(m, U'0');
  EXPECT_EQ(m.ui.device_id, "GPU-0");
  handle(m, U'9');
  EXPECT_EQ(m.ui.device_id, "GPU-0");
  EXPECT_FALSE(m.ui.message.empty()) << "eight GPUs have no number 9";
  EXPECT_TRUE(handle(m, U'q').quit);
}

TEST(Keys, ASignalNeedsAProcessAndAnAnswer) {
  Model m = model_of(one_gpu());
  EXPECT_FALSE(handle(m, U'k').ask_signal);
  EXPECT_THAT(m.ui.message, HasSubstr("choose a process"));
  handle(m, kDown);
  const Request ask = handle(m, U'k');
  ASSERT_TRUE(ask.ask_signal);
  EXPECT_EQ(ask.ask_signal->pid, 4242U);
  m.ui.target = SignalTarget{4242, "ada", "python", "08:00"};
  EXPECT_FALSE(handle(m, kEnter).send_signal);  // Enter is too easily pressed by mistake
  EXPECT_FALSE(handle(m, U'k').send_signal);
  handle(m, kDown);
  const Request send = handle(m, U'y');
  ASSERT_TRUE(send.send_signal);
  EXPECT_EQ(kSignals[static_cast<std::size_t>(*send.send_signal)].name, "TERM");
  const Request dropped = handle(m, kEscape);
  EXPECT_TRUE(dropped.drop_signal);
  EXPECT_FALSE(m.ui.target);
}

TEST(Keys, TheFilterTakesLettersAndGivesThemBack) {
  Model m = model_of(eight_gpus());
  for (const Key key : {Key{U'/'}, Key{U'q'}, Key{U'é'}, Key{U'x'}, kBackspace}) handle(m, key);
  EXPECT_EQ(m.ui.filter, "qé");
  EXPECT_TRUE(m.ui.editing_filter);
  handle(m, kBackspace);
  EXPECT_EQ(m.ui.filter, "q");
  handle(m, kEnter);
  EXPECT_FALSE(m.ui.editing_filter);
  handle(m, kEscape);
  EXPECT_EQ(m.ui.filter, "");
}

TEST(Keys, ZoomAndPanStayWithinTheHistory) {
  Model m = model_of(one_gpu());
  handle(m, U'd');
  const Span all = detail_extent(m);
  EXPECT_EQ(detail_span(m).from, all.from);
  for (int i = 0; i < 3; ++i) handle(m, U'+');
  EXPECT_NEAR(seconds_between(detail_span(m).from, detail_span(m).to), 3000.0 / 8, 1);
  EXPECT_EQ(detail_span(m).to, all.to);  // moves with the time
  handle(m, kHome);
  EXPECT_EQ(detail_span(m).from, all.from);
  handle(m, kRight);
  EXPECT_GT(detail_span(m).from, all.from);
  handle(m, kEnd);
  EXPECT_FALSE(m.ui.pan_end);
  for (int i = 0; i < 30; ++i) handle(m, U'+');
  EXPECT_GE(seconds_between(detail_span(m).from, detail_span(m).to), 9.9);
  for (int i = 0; i < 30; ++i) handle(m, U'-');
  EXPECT_EQ(detail_span(m).from, all.from);
}

TEST(Keys, PlaybackKeysOnlyInAPlayback) {
  Model m = model_of(one_gpu());
  EXPECT_EQ(handle(m, U'n').play, Play::none);
  handle(m, U'p');
  EXPECT_TRUE(m.ui.paused);
  m.playback.emplace();
  EXPECT_EQ(handle(m, U'n').play, Play::next_alert);
  EXPECT_EQ(handle(m, U'p').play, Play::toggle);
  EXPECT_EQ(handle(m, U']').play, Play::faster);
}

TEST(Keys, AcknowledgeNamesTheChosenAlert) {
  Model m = model_of(eight_gpus());
  handle(m, U'A');
  handle(m, kDown);
  const Request request = handle(m, U'a');
  ASSERT_TRUE(request.acknowledge);
  EXPECT_EQ(request.acknowledge->key, alerts(m)[1].key);
}

TEST(Themes, OneHasNoColourAndOneNoRedAgainstGreen) {
  const int mono = find_theme("monochrome");
  ASSERT_GE(mono, 0);
  const auto is_plain = [](const Look& look) { return look.colour < 0 && look.colour8 < 0; };
  EXPECT_THAT(themes()[static_cast<std::size_t>(mono)].looks, testing::Each(testing::Truly(is_plain)));
  EXPECT_THAT(themes()[0].looks, testing::Contains(testing::Not(testing::Truly(is_plain))));
  const Theme& safe = themes()[static_cast<std::size_t>(find_theme("colour-blind"))];
  for (const Look& look : safe.looks) {
    EXPECT_NE(look.colour8, 1);  // red
    EXPECT_NE(look.colour8, 2);  // green
  }
  // Critical looks differ from healthy ones without colour, too.
  const Look& critical = themes()[static_cast<std::size_t>(mono)].look(Role::critical);
  EXPECT_TRUE(critical.bold && critical.reverse);
  EXPECT_EQ(find_theme("none"), -1);
}

TEST(Terminal, HasAnAsciiForEverythingThatIsDrawn) {
  for (const Page page : kPages) {
    Model m = model_of(eight_gpus());
    m.ui.page = page;
    m.ui.detail = m.view->series.front().key;
    m.ui.help = page == Page::alerts;
    Screen s(200, 60);
    draw(s, m);
    for (int y = 0; y < s.height(); ++y)
      for (int x = 0; x < s.width(); ++x)
        EXPECT_TRUE(s.at(x, y).code == U'?' || ascii_for(s.at(x, y).code) != '?')
            << std::hex << static_cast<unsigned>(s.at(x, y).code);
  }
}

}  // namespace
}  // namespace vramtrack::top

// Every screen as a text: tests/golden/screens/*.txt. VRAMTRACK_UPDATE=1 rewrites them; then read the difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "paths.hpp"
#include "top/draw.hpp"
#include "top/theme.hpp"
#include "views.hpp"
#include "watched.hpp"

namespace vramtrack::top {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string drawn(const Model& model, int width, int height) {
  Screen screen(width, height);
  draw(screen, model);
  EXPECT_EQ(screen.overwritten(), 0);
  EXPECT_EQ(screen.outside(), 0);
  return screen.text();
}

struct Case {
  const char* name;
  std::function<Model()> model;
};

Model on(View view, Page page) {
  Model m = model_of(std::move(view));
  m.ui.page = page;
  m.ui.detail = m.view->series.front().key;
  return m;
}

std::vector<Case> cases() {
  return {
      {"overview_one", [] { return on(one_gpu(), Page::overview); }},
      {"overview_lines",
       [] {
         Model m = on(one_gpu(), Page::overview);
         m.feed.sites = [](std::uint32_t) { return probed_sites(); };
         return m;
       }},
      {"overview_eight",
       [] {
         Model m = on(eight_gpus(), Page::overview);
         m.ui.process = m.view->series[8 + 8 * 2 + 3].key;
         m.ui.device_id = "GPU-2";
         return m;
       }},
      {"overview_filtered",
       [] {
         Model m = on(eight_gpus(), Page::overview);
         m.ui.filter = "carol train_2";
         m.ui.editing_filter = true;
         return m;
       }},
      {"overview_unaccounted",
       [] {
         View view;
         SeriesView dead = process(0, 99, 2.1);
         dead.ended = true;
         view.series = {device(0, 12.3), device(1, 6), process(0, 100, 10.0), dead, process(1, 200, 7)};
         return on(view, Page::overview);
       }},
      {"overview_ended",
       [] {
         Model m = watched(kLeaksUntilItDies, 50 * 60);
         m.ui.page = Page::overview;
         return m;
       }},
      {"overview_young",
       [] {
         Model m = watched(kEightJobsStart, 90);
         m.ui.page = Page::overview;
         return m;
       }},
      {"predict_one", [] { return on(one_gpu(), Page::predict); }},
      {"predict_eight",
       [] {
         Model m = on(eight_gpus(), Page::predict);
         m.ui.device_id = "GPU-2";
         return m;
       }},
      {"predict_healthy",
       [] {
         View view;
         view.series = {device(0, 12)};
         return on(view, Page::predict);
       }},
      {"detail_gpu", [] { return on(one_gpu(), Page::detail); }},
      {"overview_ill", [] { return on(ill_gpu(), Page::overview); }},
      {"detail_ill", [] { return on(ill_gpu(), Page::detail); }},
      {"detail_process_zoomed",
       [] {
         Model m = on(one_gpu(), Page::detail);
         m.ui.detail = m.view->series[2].key;
         m.ui.zoom_s = 600;
         m.ui.pan_end = ago(300);
         m.ui.fit_scale = true;
         return m;
       }},
      {"detail_process_lines",
       [] {
         Model m = on(one_gpu(), Page::detail);
         m.ui.detail = m.view->series[2].key;
         m.feed.sites = [](std::uint32_t) { return probed_sites(); };
         return m;
       }},
      {"alerts",
       [] {
         Model m = on(eight_gpus(), Page::alerts);
         AlertRow old;
         old.key = {Metric::device_used, "GPU-7", 0, 0};
         old.who = "GPU 7 NVIDIA H100";
         old.alert = m.view->series[2].alerts.front();
         old.alert.raised = ago(90000);
         old.alert.cleared = ago(80000);
         old.alert.ended = AlertEnd::released;
         old.alert.end_reason = "5.1 GiB came back";
         m.earlier_alerts = {old};
         m.acknowledged.insert({m.view->series[5].key, m.view->series[5].alerts.front().raised});
         return m;
       }},
      {"replay",
       [] {
         Model m = on(one_gpu(), Page::overview);
         m.mode = Mode::replay;
         m.source = "vramtrack.db";
         m.playback = PlaybackState{ago(3000), test_now() + std::chrono::hours(2), 64, true, false, false};
         return m;
       }},
      {"help",
       [] {
         Model m = on(one_gpu(), Page::overview);
         m.ui.help = true;
         return m;
       }},
      {"signal",
       [] {
         Model m = on(one_gpu(), Page::overview);
         m.ui.process = m.view->series[2].key;
         m.ui.target = SignalTarget{4242, "ada", "python train.py --config resnet50.yaml", "08:00:12 UTC"};
         m.ui.signal = 1;
         return m;
       }},
      {"no_samples", [] { return model_of(View{}); }},
  };
}

/// The cells as tests/browser/pictures.mjs paints them, in the colours of the default theme.
void write_cells(const std::filesystem::path& path, const Screen& screen) {
  std::ofstream out(path);
  out << "{\"columns\":" << screen.width() << ",\"rows\":" << screen.height() << ",\"cells\":[";
  for (int y = 0; y < screen.height(); ++y)
    for (int x = 0; x < screen.width(); ++x) {
      const Cell& cell = screen.at(x, y);
      const Look& look = themes().front().look(cell.role);
      std::string text;
      if (cell.code != 0) append_utf8(text, cell.code);
      if (text == "\"" || text == "\\") text.insert(0, "\\");
      out << (x + y == 0 ? "" : ",") << "[\"" << text << "\"," << look.colour << ",\"" << (look.bold ? "b" : "")
          << (look.dim ? "d" : "") << (look.reverse != cell.selected ? "r" : "") << (look.underline ? "u" : "")
          << "\"]";
    }
  out << "]}";
}

class Golden : public testing::TestWithParam<std::tuple<std::size_t, std::pair<int, int>>> {};

TEST_P(Golden, Screen) {
  const auto& [index, size] = GetParam();
  const Case c = cases()[index];
  const Model model = c.model();
  const std::filesystem::path path =
      std::filesystem::path(tests_dir()) / "golden" / "screens" /
      (std::string(c.name) + "_" + std::to_string(size.first) + "x" + std::to_string(size.second) + ".txt");
  const std::string now = drawn(model, size.first, size.second);
  if (const char* folder = std::getenv("VRAMTRACK_SCREENS"); folder != nullptr) {
    Screen screen(size.first, size.second);
    draw(screen, model);
    write_cells(std::filesystem::path(folder) / (path.stem().string() + ".json"), screen);
  }
  if (std::getenv("VRAMTRACK_UPDATE") != nullptr) {
    std::ofstream(path) << now;
    return;
  }
  std::ifstream in(path);
  ASSERT_TRUE(in.good()) << path << " is missing; VRAMTRACK_UPDATE=1 writes it";
  std::stringstream kept;
  kept << in.rdbuf();
  EXPECT_EQ(now, kept.str()) << path;
}

INSTANTIATE_TEST_SUITE_P(Screens, Golden,
                         testing::Combine(testing::Range<std::size_t>(0, cases().size()),
                                          testing::Values(std::pair{60, 16}, std::pair{80, 24}, std::pair{120, 40},
                                                          std::pair{200, 50})),
                         [](const auto& golden) {
                           const auto size = std::get<1>(golden.param);
                           return std::string(cases()[std::get<0>(golden.param)].name) + "_" +
                                  std::to_string(size.first) + "x" + std::to_string(size.second);
                         });

std::string lines_of(const SitesNow& now, std::uint32_t pid = 4242) {
  Model m = on(one_gpu(), Page::detail);
  for (const SeriesView& s : m.view->series)
    if (s.key.pid == pid) m.ui.detail = s.key;
  std::optional<std::uint32_t> asked;
  m.feed.sites = [&](std::uint32_t of) {
    asked = of;
    return now;
  };
  std::string text = drawn(m, 200, 50);
  EXPECT_EQ(asked, pid == 0 ? std::nullopt : std::optional(pid));
  return text;
}

TEST(Screens, LinesOfAProcessAreShownWhereItRunsUnderTheProbe) {
  using State = SitesNow::State;
  EXPECT_THAT(lines_of(probed_sites()), HasSubstr("LEAK train.py:57 train_step"));
  EXPECT_THAT(lines_of({State::not_yet}), HasSubstr("its first report comes within a few seconds"));
  for (const State state : {State::unknown, State::not_probed})
    EXPECT_THAT(lines_of({state}), Not(HasSubstr("vramtrack run"))) << static_cast<int>(state);
  EXPECT_THAT(lines_of(probed_sites(), 0), Not(HasSubstr("train_step"))) << "a GPU has no lines";
}

TEST(Screens, TheLeakingLineOfTheSuspectIsOnTheOverview) {
  Model m = on(one_gpu(), Page::overview);
  EXPECT_THAT(drawn(m, 120, 40), Not(HasSubstr("train_step")));
  std::vector<std::uint32_t> asked;
  m.feed.sites = [&](std::uint32_t pid) {
    asked.push_back(pid);
    return probed_sites();
  };
  for (const auto& [width, height] : {std::pair{80, 24}, std::pair{120, 40}, std::pair{200, 50}})
    EXPECT_THAT(drawn(m, width, height), HasSubstr("line      train.py:57 train_step, +126 MiB/min")) << width;
  EXPECT_THAT(asked, testing::Each(4242));
  SitesNow none = probed_sites();
  none.report.sites.front().leak = false;
  m.feed.sites = [&](std::uint32_t) { return none; };
  EXPECT_THAT(drawn(m, 120, 40), Not(HasSubstr("train_step")));
  // Data that is traced while the program runs is in the view.
  View traced = one_gpu();
  SiteLifetimes site;
  site.site = "serve.py:9 cache";
  site.live_bytes = kGiB;
  site.live_blocks = 100;
  site.ages = {{0, 60, kGiB, kGiB}};
  traced.series[2].sites.push_back(site);
  EXPECT_THAT(drawn(on(std::move(traced), Page::overview), 120, 40), HasSubstr("line      serve.py:9 cache, +"));
}

TEST(Screens, LinesAreCutAndForeignNamesPrintable) {
  SitesNow now = probed_sites();
  now.report.sites[0].site = "evil\x1b[2J\n.py:1 " + std::string(5000, 'x');
  now.report.because = "\x1b[31m";
  const MemorySite one = now.report.sites[1];
  now.report.sites.resize(40, one);
  const std::string text = lines_of(now);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  Model m = on(one_gpu(), Page::detail);
  m.ui.detail = m.view->series[2].key;
  m.feed.sites = [&](std::uint32_t) { return now; };
  drawn(m, 80, 24);
}

TEST(Screens, OneEtaOnEveryPage) {
  const Model overview = on(one_gpu(), Page::overview);
  for (const Page page : {Page::overview, Page::predict, Page::detail, Page::alerts}) {
    const std::string text = drawn(on(one_gpu(), page), 120, 40);
    EXPECT_THAT(text, HasSubstr("out of memory in 0h 24m (19m–30m)")) << static_cast<int>(page);
  }
}

TEST(Screens, SeverityIsAWordAndARole) {
  Screen screen(80, 24);
  draw(screen, on(one_gpu(), Page::overview));
  bool found = false;
  for (int x = 0; x < 80; ++x) found = found || screen.at(x, 1).role == Role::critical;
  EXPECT_TRUE(found);
  EXPECT_THAT(screen.text(), HasSubstr("CRITICAL"));
}

TEST(Screens, TheSuspectIsTheGrowerNotTheLargest) {
  EXPECT_THAT(drawn(on(one_gpu(), Page::predict), 120, 40), HasSubstr("suspect   pid 4242 python train.py"));
}

TEST(Screens, WhatToTryIsSaidOnce) {
  const std::string text = drawn(on(one_gpu(), Page::predict), 200, 50);
  const std::size_t first = text.find("try: keep loss.item()");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("keep loss.item()", first + 10), std::string::npos);
}

TEST(Screens, AnAlertSaysFirstWhatTellsItFromOthers) {
  EXPECT_THAT(drawn(on(one_gpu(), Page::alerts), 100, 30), HasSubstr("GPU 0, pid 4242 "));
}

TEST(Screens, AnAgentThatSimulatesSaysSo) {
  Model m = on(one_gpu(), Page::overview);
  m.mode = Mode::agent;
  m.source = "agent pid 7";
  EXPECT_THAT(drawn(m, 120, 40), HasSubstr("live from agent pid 7"));
  m.simulated = "leaking_training";
  EXPECT_THAT(drawn(m, 120, 40), HasSubstr("SIMULATION leaking_training, agent pid 7"));
}

TEST(Screens, WhatMemoryConsistsOfAddsUp) {
  EXPECT_THAT(drawn(on(one_gpu(), Page::overview), 80, 24),
              HasSubstr("GPU 0: 2 processes 19.8 GiB + 410 MiB driver = 20.2 GiB used"));
  const std::string text = drawn(cases()[4].model(), 120, 40);
  EXPECT_THAT(text, HasSubstr("1 process 10.0 GiB + 2.3 GiB held by no live process = 12.3 GiB used"));
  EXPECT_THAT(text, HasSubstr("1 process 7.0 GiB - 1.0 GiB counted twice = 6.0 GiB used"));
}

TEST(Screens, BelowTheLeastSizeOneMessage) {
  const std::string text = drawn(on(one_gpu(), Page::overview), 59, 24);
  EXPECT_EQ(text.substr(0, text.find('\n')), "vramtrack top needs 60x16; this is 59x24");
  EXPECT_THAT(text, Not(HasSubstr("GPU 0")));
}

TEST(Screens, AForeignCommandCannotWriteAnywhereElse) {
  View view = one_gpu();
  view.series[2].process->command = "evil\033[2J\u202eesrever \u65e5\u672c\u8a9e\nnext";
  const std::string text = drawn(on(view, Page::overview), 200, 50);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("\u65e5\u672c\u8a9e"));
}

}  // namespace
}  // namespace vramtrack::top

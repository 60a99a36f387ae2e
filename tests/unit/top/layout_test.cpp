// Properties of every screen: nothing overlaps and nothing is outside, whatever is shown at whatever size.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

#include "top/draw.hpp"
#include "top/keys.hpp"
#include "views.hpp"

namespace vramtrack::top {
namespace {

using rc::gen::arbitrary;
using rc::gen::element;
using rc::gen::inRange;

std::string any_text() {
  return *element<std::string>("", "python train.py", "a", std::string(300, 'x'), "日本語のコマンド --flag",
                               "tab\tand\nnewline", "e\u0301\u202e", "\xff\xfe broken");
}

double any_number() {
  return *element(0.0, 1.0, -1.0, 60.0, 1e6, 3e9, -3e9, 1e18, 1e300, std::nan(""),
                  std::numeric_limits<double>::infinity());
}

Finding any_finding() {
  Finding f;
  f.detector = *element<std::string>("judge", "linear_trend", "");
  f.leak = *arbitrary<bool>();
  f.state = static_cast<State>(*inRange(0, 9));
  f.pattern = static_cast<Pattern>(*inRange(0, 6));
  f.spike = static_cast<SpikeOutcome>(*inRange(0, 3));
  f.confidence = *element(0.0, 0.5, 0.999, 1.0);
  f.growth_bytes_per_s = {any_number(), any_number(), any_number()};
  f.r_squared = *element(0.0, 0.991);
  if (*arbitrary<bool>()) f.oom_in_s = Interval{any_number(), any_number(), any_number()};
  if (*arbitrary<bool>()) f.onset = ago(*element(0.0, 10.0, 2400.0, 1e7, -100.0));
  f.because = any_text();
  return f;
}

void dress(SeriesView& s) {
  s.verdict.finding = any_finding();
  s.verdict.severity = static_cast<Severity>(*inRange(0, 4));
  for (int i = *inRange(0, 3); i > 0; --i) s.verdict.dissent.push_back(any_finding());
  if (*arbitrary<bool>()) s.verdict.suspect = Suspect{*element(0U, 4242U), 1, any_text(), *element(0.0, 1.0, 7.0)};
  s.verdict.framework = *element<std::string>("", "PyTorch");
  if (*arbitrary<bool>()) s.verdict.causes = {any_text()};
  if (*arbitrary<bool>()) s.verdict.advice = {any_text()};
  s.paused = *inRange(0, 9) == 0;
  s.ended = *inRange(0, 9) == 0;
  s.ignored = *inRange(0, 9) == 0;
  if (*arbitrary<bool>()) s.utilisation_ratio = 0.5;
  const auto maybe = [] { return *arbitrary<bool>() ? std::optional(any_number()) : std::nullopt; };
  s.gauges = {maybe(), maybe(), maybe(), maybe(), maybe()};
  s.load = {maybe(), maybe(), {}};
  if (*arbitrary<bool>()) s.load.host_bytes = *element<std::uint64_t>(0, 1, ~0ULL);
  if (*arbitrary<bool>()) {
    s.health.emplace();
    if (*arbitrary<bool>()) s.health->temperature_celsius = any_number();
    if (*arbitrary<bool>()) s.health->ecc_enabled = *arbitrary<bool>();
    if (*arbitrary<bool>()) s.health->ecc_since_load.uncorrected = *element<std::uint64_t>(0, 1, ~0ULL);
    if (*arbitrary<bool>()) s.health->throttle = ThrottleSet{*arbitrary<std::uint8_t>()};
    s.health->repair_pending = *arbitrary<bool>();
  }
  if (*inRange(0, 3) == 0) s.last_xid = LastXid{ago(*element(0.0, 1e6)), *element<std::uint64_t>(31, 79), any_text()};
  if (*inRange(0, 5) == 0) s.device.capacity_bytes.reset();
  if (*inRange(0, 5) == 0) s.device.index.reset();
  if (*inRange(0, 9) == 0) s.device.parent_id = "GPU-0";
  if (*inRange(0, 5) == 0) s.first.reset();
  s.device.name = any_text();
  s.used_bytes = *element<std::uint64_t>(0, 1, 1ULL << 30, 1ULL << 36, ~0ULL);
  for (int i = *inRange(0, 3); i > 0; --i) {
    Alert a;
    a.raised = ago(i * 100);
    a.ended = static_cast<AlertEnd>(*inRange(0, 4));
    if (a.ended != AlertEnd::standing) a.cleared = ago(i * 50);
    a.severity = static_cast<Severity>(*inRange(0, 4));
    a.finding = any_finding();
    a.end_reason = any_text();
    s.alerts.push_back(a);
  }
}

Model any_model() {
  View view;
  const int gpus = *inRange(0, 20);
  for (int g = 0; g < gpus; ++g) {
    if (*inRange(0, 9) == 0) continue;  // only its processes are known
    view.series.push_back(device(g, 10));
    dress(view.series.back());
  }
  for (int p = *inRange(0, 60); p > 0 && gpus > 0; --p) {
    view.series.push_back(process(*inRange(0, gpus), static_cast<std::uint32_t>(1000 + p), 1, any_text(), any_text()));
    dress(view.series.back());
    view.series.back().process->slurm_job = *element<std::string>("", "1234567890");
  }
  for (int i = *inRange(0, 9); i > 0; --i) view.notices.push_back({ago(i * 10), any_text()});
  view.clock_is_relative = *inRange(0, 5) == 0;
  Model m = model_of(std::move(view));
  if (*arbitrary<bool>()) m.playback = PlaybackState{ago(3000), {}, 64, true, *arbitrary<bool>(), *arbitrary<bool>()};
  m.source = any_text();
  m.boot = ago(100000);
  Ui& ui = m.ui;
  ui.page = static_cast<Page>(*inRange(0, 4));
  if (!m.view->series.empty()) {
    const auto any = [&] { return m.view->series[*inRange<std::size_t>(0, m.view->series.size())].key; };
    ui.detail = any();
    ui.process = any();
    ui.device_id = any().device_id;
  }
  if (*inRange(0, 5) == 0) m.only.users = {any_text()};
  if (*inRange(0, 5) == 0) m.only.pids = {1001, 4242};
  ui.filter = *element<std::string>("", "", "python", "nothing like that", any_text());
  ui.editing_filter = *inRange(0, 5) == 0;
  ui.sort = static_cast<Sort>(*inRange(0, static_cast<int>(kSorts)));
  ui.help = *inRange(0, 5) == 0;
  ui.help_scroll = *inRange(0, 100);
  ui.detail_scroll = *inRange(0, 100);
  ui.zoom_s = *element(0.0, 1.0, 100.0, 1e9);
  if (*arbitrary<bool>()) ui.pan_end = ago(*element(0.0, 1000.0, -1000.0));
  ui.fit_scale = *arbitrary<bool>();
  ui.message = *element<std::string>("", any_text());
  if (*inRange(0, 9) == 0) ui.target = SignalTarget{1, any_text(), any_text(), any_text()};
  return m;
}

void hold_place(const Screen& screen) {
  if (screen.overwritten() > 0 || screen.outside() > 0) RC_LOG() << screen.text();
  RC_ASSERT(screen.overwritten() == 0);
  RC_ASSERT(screen.outside() == 0);
}

TEST(Layout, NothingOverlapsAndNothingIsOutside) {
  EXPECT_TRUE(rc::check("any model at any size from 60x16", [] {
    const Model m = any_model();
    const int width = *inRange(kLeastWidth, 260);
    const int height = *inRange(kLeastHeight, 90);
    Screen screen(width, height);
    draw(screen, m);
    hold_place(screen);
    for (const char c : screen.text()) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  }));
}

TEST(Layout, TooSmallIsSaidAtAnySize) {
  EXPECT_TRUE(rc::check("any size below", [] {
    const bool narrow = *arbitrary<bool>();
    Screen screen(narrow ? *inRange(0, kLeastWidth) : *inRange(0, 300),
                  narrow ? *inRange(0, 100) : *inRange(0, kLeastHeight));
    draw(screen, model_of(one_gpu()));
    RC_ASSERT(screen.outside() == 0);
    if (screen.width() >= 45 && screen.height() >= 1) RC_ASSERT(screen.text().find("vramtrack top needs 60x16") == 0U);
  }));
}

TEST(Layout, AnyKeysLeaveAScreenThatCanBeDrawn) {
  EXPECT_TRUE(rc::check("keys and a new View in between", [] {
    Model m = any_model();
    const auto keys = *rc::gen::container<std::vector<Key>>(
        rc::gen::oneOf(element<Key>(U'o', U'P', U'd', U'A', U'a', U's', U'S', U'g', U'/', U'k', U'p', U't', U'y', U'+',
                                    U'-', U'0', U'n', U'1', U'9', U'?', U'z', U' '),
                       inRange<Key>(kUp, kResize + 1)));
    for (const Key key : keys) {
      const Request request = handle(m, key);
      if (request.quit) break;
      if (request.ask_signal) m.ui.target = SignalTarget{1, "u", "c", "s"};
      if (*inRange(0, 9) == 0) m.view = any_model().view;  // rows come and go under the cursor
      Screen screen(100, 30);
      draw(screen, m);
      hold_place(screen);
    }
  }));
}

}  // namespace
}  // namespace vramtrack::top

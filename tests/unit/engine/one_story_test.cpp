// One run, judged at each minute and after its end: neither more data nor the end changes the earlier conclusions.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/units.hpp"
#include "report/conclusion.hpp"
#include "scenario_run.hpp"

namespace vramtrack {
namespace {

/// The conclusions about the device.
struct Cut {
  double at_s = 0;
  Verdict verdict;
  bool is_of_ended_run = false;
  bool leaked = false;
};

/// Calls `look` with the view of the demo at each minute, and after its last sample. `processes`: whether there is a
/// list of processes.
void watch_demo(bool processes, const std::function<void(const View& view, double at_s)>& look) {
  auto scenario = sim::parse_scenario(sim::builtin_scenarios().front().toml, "demo");
  scenario->start.reset();
  Catalog catalog;
  Engine engine(Config{}, catalog);
  const auto source = sim::make_simulation(*scenario, catalog);
  double next_s = 60;
  for (bool more = true; more;) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    more = progress && *progress != Progress::end;
    // Like `simulate`, it ends with its program.
    for (const Event& e : batch.events) more = more && !e.ran_out_of_memory;
    if (!processes) {
      std::erase_if(batch.samples, [&](const Sample& s) { return catalog.key(s.series).pid != 0; });
      batch.events.clear();
    }
    engine.ingest(batch);
    if (batch.samples.empty()) continue;
    const double now_s = seconds_between(Timestamp{}, batch.samples.back().time);
    if (now_s < next_s) continue;
    next_s += 60;
    look(*engine.view(), now_s);
  }
  engine.end_of_recording();
  look(*engine.view(), next_s);
}

std::vector<Cut> cuts_of_demo(bool processes) {
  std::vector<Cut> cuts;
  watch_demo(processes, [&](const View& view, double at_s) {
    for (const SeriesView& s : view.series)
      if (s.key.metric == Metric::device_used) {
        const Conclusion conclusion(view, s);
        cuts.push_back({at_s, conclusion.verdict(), conclusion.is_of_ended_run(), has_leaked(s)});
      }
  });
  return cuts;
}

TEST(OneStory, OnsetAndProbabilityHoldFromTheFirstAlertBeyondTheEnd) {
  for (const bool processes : {false, true}) {
    SCOPED_TRACE(processes);
    double highest = 0;
    int told = 0;
    const std::vector<Cut> cuts = cuts_of_demo(processes);
    for (const Cut& c : cuts) {
      const Finding& f = c.verdict.finding;
      if (!f.leak) continue;
      ++told;
      ASSERT_TRUE(f.onset);
      EXPECT_NEAR(seconds_between(Timestamp{}, *f.onset), 600, 60) << c.at_s << " s";
      EXPECT_GE(f.confidence, highest - 0.02) << c.at_s << " s";
      EXPECT_GE(f.r_squared, 0.99) << c.at_s << " s";
      highest = std::max(highest, f.confidence);
    }
    EXPECT_GE(told, 50);
    EXPECT_TRUE(cuts.back().is_of_ended_run);
    EXPECT_TRUE(cuts.back().leaked);
    EXPECT_EQ(cuts.back().verdict.finding.onset, cuts.back().verdict.end->onset);
  }
}

TEST(OneStory, TheListOfProcessesMakesNoAnswerWorse) {
  const std::vector<Cut> device = cuts_of_demo(false);
  const std::vector<Cut> both = cuts_of_demo(true);
  ASSERT_EQ(device.size(), both.size());
  // If the start of the program is seen, its rise may be a load for a little longer.
  constexpr double kYoung_s = 300;
  std::optional<double> told_s;
  for (std::size_t i = 0; i < device.size(); ++i) {
    const Finding& alone = device[i].verdict.finding;
    const Finding& f = both[i].verdict.finding;
    if (f.leak) {
      EXPECT_NEAR(seconds_between(Timestamp{}, *f.onset), 600, 60) << "what the list alone shows is true";
    }
    if (!alone.leak) continue;
    told_s = told_s.value_or(device[i].at_s);
    if (!f.leak && device[i].at_s <= *told_s + kYoung_s) continue;
    ASSERT_TRUE(f.leak) << device[i].at_s << " s: " << f.because;
    EXPECT_LE(*f.onset, *alone.onset) << device[i].at_s << " s";
    EXPECT_GE(f.confidence, alone.confidence - 0.01) << device[i].at_s << " s";
  }
}

TEST(OneStory, ADeviceAndItsSuspectHaveOneBeginning) {
  int told = 0;
  watch_demo(true, [&](const View& view, double at_s) {
    const SeriesView* device = nullptr;
    for (const SeriesView& s : view.series)
      if (s.key.metric == Metric::device_used && s.verdict.finding.leak && s.verdict.suspect) device = &s;
    if (device == nullptr) return;
    for (const SeriesView& s : view.series) {
      if (s.key.metric != Metric::process_used || s.key.pid != device->verdict.suspect->pid) continue;
      ++told;
      EXPECT_EQ(s.verdict.finding.onset, device->verdict.finding.onset) << at_s;
    }
  });
  EXPECT_GE(told, 20);
}

constexpr const char* kTooLarge = R"(name = "too_large"
seed = 5
period_s = 2
duration_s = "8min"
[[device]]
name = "NVIDIA A10"
capacity_bytes = "24GiB"
baseline_bytes = "260MiB"
[[process]]
name = "loader"
pid = 4242
command = "python app.py"
start_s = 30
{}
  [[process.shape]]
  kind = "linear"
  rate_bytes_per_s = "8GiB/min"
)";

TEST(OneStory, AModelThatDoesNotFitHasNotLeaked) {
  for (const std::string facts : {"", "busy = 0.9", "busy = 0.9\nworks_after_s = 3600"}) {
    SCOPED_TRACE(facts);
    std::string toml = kTooLarge;
    toml.replace(toml.find("{}"), 2, facts);
    auto scenario = sim::parse_scenario(toml, "too_large");
    ASSERT_TRUE(scenario) << scenario.error().message;
    const auto run = play(std::move(*scenario));
    int seen = 0;
    for (const SeriesView& s : run->view->series) {
      if (s.key.metric == Metric::device_unattributed) continue;
      ++seen;
      ASSERT_TRUE(s.verdict.end);
      EXPECT_EQ(s.verdict.end->how, EndKind::out_of_memory);
      EXPECT_TRUE(s.verdict.end->while_loading) << s.verdict.finding.because;
      EXPECT_FALSE(has_leaked(s));
    }
    EXPECT_EQ(seen, 2) << "the device and its process";
  }
}

}  // namespace
}  // namespace vramtrack

// From findings to verdicts: who explains a device's growth, and the View of everything.
#include <algorithm>

#include "engine/engine_core.hpp"

namespace vramtrack {

Attribution Engine::Core::attribution(const SeriesState& device, const Finding& finding) const {
  const Timestamp onset = finding.onset.value_or(device.first_time);
  std::vector<ProcessGrowth> processes;
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (s.key.pid != 0 && s.key.metric == Metric::process_used) processes.push_back(s.growth_since(onset, catalog));
  });
  return attribute(device.rise_since(onset), processes);
}

Verdict Engine::Core::verdict(const SeriesState& s) const {
  Verdict v = s.verdict(config.severity);
  if (s.key.pid == 0) leave_the_past(s, v);
  if (s.key.pid == 0 && s.key.metric == Metric::device_used && grows(v.finding)) {
    const Attribution a = attribution(s, v.finding);
    v.suspect = a.suspect;
    if (!v.suspect && !a.any_process && catalog.processes_are_listed)
      v.suspect = Suspect{0, 0, "no visible process", 1.0};
    if (v.finding.leak && a.churn_share >= kChurnExplains) {
      v.finding.leak = false;
      v.finding.state = State::steady;
      v.finding.pattern = Pattern::none;
      v.finding.oom_in_s.reset();
      v.finding.confidence = std::min(v.finding.confidence * (1 - a.churn_share), 0.5);
      v.severity = Severity::ok;
      v.finding.because = "processes that started in the meantime explain the rise (" +
                          std::to_string(static_cast<int>(a.churn_share * 100)) + " % of it); " + v.finding.because;
    }
  }
  s.name_framework(v, catalog);
  return v;
}

std::shared_ptr<const View> Engine::view(bool explain) const {
  auto view = std::make_shared<View>();
  view->time = core_->tick;
  view->clock_is_relative = core_->catalog.clock_is_relative;
  view->notices.assign(core_->notices.begin(), core_->notices.end());
  core_->series.for_each([&](const SeriesState& s) {
    if (s.samples == 0) return;
    view->series.push_back(s.view(core_->catalog, explain));
    view->series.back().verdict = core_->verdict(s);
    view->series.back().level_bytes = s.level_of(view->series.back().verdict.finding);
  });
  std::stable_sort(view->series.begin(), view->series.end(), [](const SeriesView& a, const SeriesView& b) {
    if ((a.key.pid != 0) != (b.key.pid != 0)) return a.key.pid == 0;
    if (a.key.host != b.key.host) return a.key.host < b.key.host;
    const int ai = a.device.index.value_or(1 << 20);
    const int bi = b.device.index.value_or(1 << 20);
    if (ai != bi) return ai < bi;
    if (a.key.pid == 0) return false;
    if (a.key.device_id != b.key.device_id) return a.key.device_id < b.key.device_id;
    return a.used_bytes > b.used_bytes;
  });
  return view;
}

}  // namespace vramtrack

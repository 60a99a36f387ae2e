#include "session.hpp"

#include <algorithm>
#include <utility>

namespace vramtrack::accuracy {
namespace {

constexpr int kLooks = 24;                    ///< that calibration is measured on
constexpr int kGlances = 5;                   ///< at the confidence, for each of those
constexpr std::uint32_t kRestartPids = 1000;  ///< a restart's pid is this much higher

}  // namespace

Session::Session(const Trace& trace, const Config& config, Catalog& catalog, Past& past)
    : trace_(trace), catalog_(catalog), listing_(trace, catalog), engine_(config, catalog) {
  engine_.remember(past.memory());
  engine_.on_alert([this](const AlertChange& change) { note(change); });
}

void Session::expect_duration(double duration_s) {
  look_every_s_ = duration_s / (kLooks * kGlances);
}

void Session::ingest(const Batch& batch) {
  const Batch seen = listing_.pass(batch);
  engine_.ingest(seen);
  for (const Sample& s : batch.samples) {
    now_s_ = seconds_of(s.time);
    const SeriesKey& key = catalog_.key(s.series);
    if (key.metric == Metric::device_used && key.device_id == device_)
      played_.points.push_back({now_s_, static_cast<double>(s.bytes)});
  }
  for (const Event& e : batch.events) {
    if (!trace_.label.leak || !trace_.label.suspect_pid || e.kind != Event::Kind::process_ended) continue;
    const bool again = trace_.restart_after_s && e.pid % kRestartPids == *trace_.label.suspect_pid % kRestartPids;
    if (e.pid == *trace_.label.suspect_pid || again) note_end(seconds_of(e.time));
  }
  note_told(seen);
  if (raised_now_ && !played_.ours.suspect_right) note_suspect();
  raised_now_ = false;
  if (now_s_ >= next_look_s_) {
    next_look_s_ = now_s_ + look_every_s_;
    look();
  }
}

Played Session::finish() {
  engine_.finish();
  played_.end_s = now_s_;
  if (standing_ > 0) played_.ours.alarms.push_back({raised_s_, now_s_});
  note_told({});
  if (told_since_s_) played_.ours.told.push_back({*told_since_s_, now_s_});
  looks_ = 0;
  if (!played_.oom_s) look();
  note_suspicions();
  return std::move(played_);
}

void Session::note_end(double at_s) {
  if (!played_.oom_s) played_.oom_s = at_s;
  const double onset_s = played_.lives.empty()
                             ? trace_.label.onset_s
                             : played_.lives.back().end_s + trace_.restart_after_s.value_or(0) + trace_.label.onset_s;
  played_.lives.push_back({onset_s, at_s});
}

void Session::foretell(std::size_t share, double true_in_s) {
  EndForetold end{true_in_s, {}};
  if (const SeriesView* s = ours(engine_.view()); s != nullptr && s->verdict.finding.leak)
    end.said = s->verdict.finding.oom_in_s;
  played_.ours.ends[share] = end;
}

void Session::note(const AlertChange& change) {
  if (change.news == AlertNews::escalated) return;
  const SeriesKey& key = catalog_.key(change.alert.series);
  if (key.device_id != device_) {
    played_.ours.false_elsewhere += change.news == AlertNews::raised && !trace_.label.on_all_devices ? 1 : 0;
    return;
  }
  if (change.news == AlertNews::raised) {
    if (standing_++ == 0) raised_s_ = seconds_of(change.alert.raised);
    raised_now_ = true;
    if (played_.ours.because.empty()) played_.ours.because = change.alert.finding.because;
  } else if (--standing_ == 0) {
    played_.ours.alarms.push_back({raised_s_, seconds_of(*change.alert.cleared)});
  }
}

void Session::note_told(const Batch& batch) {
  for (const Sample& s : batch.samples)
    if (engine_.leaks(s.series)) telling_.insert(s.series);
  std::erase_if(telling_, [this](SeriesId id) { return !engine_.leaks(id); });
  const auto ours = [this](SeriesId id) { return catalog_.key(id).device_id == device_; };
  const bool here = std::any_of(telling_.begin(), telling_.end(), ours);
  const bool elsewhere = !std::all_of(telling_.begin(), telling_.end(), ours) && !trace_.label.on_all_devices;
  played_.ours.told_elsewhere += elsewhere && !told_elsewhere_ ? 1 : 0;
  told_elsewhere_ = elsewhere;
  if (here && !told_since_s_) told_since_s_ = now_s_;
  if (here || !told_since_s_) return;
  played_.ours.told.push_back({*told_since_s_, now_s_});
  told_since_s_.reset();
}

/// From the first suspicion on: of alerts, and of what was never confirmed.
void Session::note_suspicions() {
  const auto view = engine_.view();
  for (const SeriesView& s : view->series) {
    if (s.key.device_id != device_) continue;
    for (const auto* stage : {&s.suspicions, &s.alerts})
      for (const Alert& a : *stage)
        played_.ours.suspicions.push_back(
            {seconds_of(a.raised) - a.suspected_for_s.value_or(0), a.cleared ? seconds_of(*a.cleared) : now_s_});
  }
  std::sort(played_.ours.suspicions.begin(), played_.ours.suspicions.end(),
            [](const Alarm& a, const Alarm& b) { return a.raised_s < b.raised_s; });
}

void Session::note_suspect() {
  if (!trace_.label.suspect_pid || now_s_ < trace_.label.onset_s) return;
  const SeriesView* s = ours(engine_.view());
  if (s != nullptr && s->verdict.suspect)
    played_.ours.suspect_right =
        s->verdict.suspect->pid == (trace_.label.suspect_is_seen ? *trace_.label.suspect_pid : 0);
}

const SeriesView* Session::ours(std::shared_ptr<const View> view) {
  view_ = std::move(view);
  for (const SeriesView& s : view_->series)
    if (s.key.metric == Metric::device_used && s.key.device_id == device_) return &s;
  return nullptr;
}

void Session::look() {
  const SeriesView* s = ours(engine_.view());
  if (s == nullptr) return;
  const Finding& f = s->verdict.finding;
  const bool leaking = trace_.label.leak && now_s_ >= trace_.label.onset_s;
  for (std::size_t i = 0; i < kBars.size() && f.confidence >= kBars[i]; ++i) {
    Reached& reached = played_.ours.bars[i];
    if (!leaking)
      reached.while_healthy = true;
    else if (!reached.leaking_s)
      reached.leaking_s = now_s_;
  }
  if (looks_++ % kGlances != 0) return;
  const bool rising = f.state == State::growing || f.state == State::leaking || f.state == State::slow_growth;
  played_.ours.looks.push_back({f.confidence, leaking, rising});
  if (leaking || !trace_.label.leak)
    played_.ours.highest_confidence = std::max(played_.ours.highest_confidence, f.confidence);
  played_.ours.slow_growth = leaking && f.state == State::slow_growth;
  if (f.leak && leaking) {
    played_.ours.pattern = f.pattern;
    played_.ours.growth_bytes_per_s = f.growth_bytes_per_s.mid;
  }
}

}  // namespace vramtrack::accuracy

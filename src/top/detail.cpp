// The detail page of one GPU or process: its whole history with zoom and pan, and all known facts about it.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/units.hpp"
#include "report/accounting.hpp"
#include "report/conclusion.hpp"
#include "report/conclusion_words.hpp"
#include "report/health.hpp"
#include "report/words.hpp"
#include "top/chart.hpp"
#include "top/draw.hpp"
#include "top/gauges.hpp"
#include "top/rows.hpp"
#include "top/site_rows.hpp"

namespace vramtrack::top {
namespace {

constexpr double kLeastSpan_s = 10;

struct Fact {
  std::string label;
  std::string text;
  Role role = Role::plain;
  bool is_row = false;  ///< a table row: truncated if it is too long
};

void add_identity(std::vector<Fact>& facts, const Model& m, const SeriesView& s) {
  if (s.key.pid == 0) {
    facts.push_back({"memory", accounting_words(account(*m.view, device_key(s.key)), m.view->scale), Role::plain});
    return;
  }
  const ProcessInfo none;
  const ProcessInfo& p = s.process ? *s.process : none;
  std::string words = fmt::format("{} on {}", m.view->scale.bytes(s.used_bytes), device_words(s));
  if (!p.framework.empty()) words += ", " + p.framework;
  if (!p.kind.empty()) words += ", type " + p.kind;
  if (const auto at = started(m, s))
    words += fmt::format(", started {}{}", at->at_most ? "by " : "", clock_words(at->time, *m.view));
  if (s.ended) words += ", has ended";
  facts.push_back({"process", words, Role::plain});
  if (!(s.load == ProcessLoad{}))
    facts.push_back({"load",
                     fmt::format("kernels run {} of the time; CPU {}, host memory {}",
                                 percent_or_dash(s.load.gpu_ratio), percent_or_dash(s.load.cpu_ratio),
                                 s.load.host_bytes ? m.view->scale.bytes(*s.load.host_bytes) : "-"),
                     Role::plain});
  std::string place = container_words(p);
  if (p.ns_pid != 0) place += fmt::format("{}pid {} in its container", place.empty() ? "" : ", ", p.ns_pid);
  if (!p.cgroup.empty()) place += (place.empty() ? "" : ", ") + printable(p.cgroup);
  if (!place.empty()) facts.push_back({"runs in", place, Role::plain});
}

void add(std::vector<Fact>& facts, const std::vector<vramtrack::Fact>& words) {
  std::string_view last;
  for (const vramtrack::Fact& one : words) {
    facts.push_back({one.label == last ? std::string() : one.label, one.text, Role::plain});
    last = one.label;
  }
}

void add_verdict(std::vector<Fact>& facts, const Model& m, const SeriesView& s, const ConclusionWords& words) {
  if (!words.growth.empty()) {
    const Conclusion conclusion(*m.view, s);
    facts.push_back(
        {"growth",
         fmt::format("{}, R² {}, probability of a leak {}{}, found by {}", words.growth,
                     format_r_squared(conclusion.finding().r_squared), words.probability,
                     words.pattern.empty() ? "" : ", pattern " + words.pattern, conclusion.finding().detector),
         Role::plain});
  }
  add(facts, words.facts);
  if (!words.next.empty()) facts.push_back({"next", words.next, Role::plain});
}

void add_sites(std::vector<Fact>& facts, const Model& m, const SeriesView& s) {
  if (s.key.pid == 0 || s.ended || !m.feed.sites) return;
  bool is_first = true;
  for (SiteRow& row : site_rows(m.feed.sites(s.key.pid)))
    facts.push_back({std::exchange(is_first, false) ? "lines" : "", std::move(row.text), row.role, row.is_cut});
}

void add_alerts(std::vector<Fact>& facts, const Model& m, const SeriesView& s) {
  for (const AlertRow& row : every_alert(m)) {
    if (!(row.key == s.key)) continue;
    const Alert& a = row.alert;
    const AlertWords phrases = alert_words(a, m.view->scale);
    std::string words = fmt::format("{}  {} {}", clock_words(a.raised, *m.view), phrases.severity, phrases.what);
    if (a.kind == AlertKind::leak) words += ", " + m.view->scale.rate(a.finding.growth_bytes_per_s);
    if (!phrases.figures.empty()) words += ", " + phrases.figures;
    words += fmt::format("; {}{}", a.cleared ? clock_words(*a.cleared, *m.view) + "  " : std::string(), phrases.ended);
    if (a.ended == AlertEnd::standing)
      words += fmt::format("{}{}", m.acknowledged.contains({row.key, a.raised}) ? ", acknowledged" : "",
                           m.silenced.contains({row.key, a.raised}) ? ", silenced" : "");
    facts.push_back({"alert", words, figure_role(phrases.tone)});
  }
}

/// The series with the device's health, even for a process, because a device's problem affects it. For a MIG instance,
/// that of its GPU.
const SeriesView* health_series(const View& view, const SeriesView& s) {
  const std::string& id = s.device.parent_id.empty() ? s.key.device_id : s.device.parent_id;
  return find(view, {Metric::device_used, id, 0, 0});
}

void add_health(std::vector<Fact>& facts, const Model& m, const SeriesView& s) {
  const SeriesView* device = health_series(*m.view, s);
  const HealthReport report = device != nullptr ? judge_health(*device, m.view->time) : HealthReport{};
  if (s.key.pid == 0) {
    std::string words = s.paused ? "the device does not answer" : std::string(to_string(report.condition));
    if (report.condition == Condition::unknown && !s.paused) words = "answers";
    if (s.utilisation_ratio) words += fmt::format(", {} busy", format_percent(*s.utilisation_ratio));
    if (!(s.gauges == DeviceGauges{}))
      words += fmt::format(", memory bus {} busy, {}, fan {}", percent_or_dash(s.gauges.memory_utilisation_ratio),
                           power_words(s.gauges), percent_or_dash(s.gauges.fan_ratio));
    if (device != nullptr)
      words += fmt::format("; {}; {}", health_words(device->health),
                           xid_words(*device, [&](Timestamp time) { return clock_words(time, *m.view); }));
    facts.push_back({"health", words, s.paused ? Role::notice : condition_role(report.condition)});
  }
  for (const HealthProblem& p : report.problems)
    facts.push_back({s.key.pid == 0 ? "" : "health", fmt::format("{}: {}; {}", to_string(p.condition), p.text, p.next),
                     condition_role(p.condition)});
}

void add_events(std::vector<Fact>& facts, const Model& m) {
  // The most recent first.
  for (auto it = m.view->notices.rbegin(); it != m.view->notices.rend(); ++it)
    facts.push_back({"event", clock_words(it->time, *m.view) + "  " + printable(it->text), Role::notice});
}

void add_series(std::vector<Fact>& facts, const Model& m, const SeriesView& s) {
  std::string words = fmt::format("{} sample{}", s.samples, s.samples == 1 ? "" : "s");
  if (s.interval_s > 0) words += fmt::format(", every {}", m.view->scale.duration(s.interval_s));
  words += fmt::format(", {} now, peak {}", m.view->scale.bytes(s.used_bytes), m.view->scale.bytes(s.peak_bytes));
  const Span all = detail_extent(m);
  words += fmt::format(", recorded since {}", clock_words(all.from, *m.view));
  facts.push_back({"seen", words, Role::faint});
  // The figures of the process's own allocator, if they are recorded.
  for (const SeriesView& other : m.view->series) {
    if (other.key.pid != s.key.pid || s.key.pid == 0 || other.key.device_id != s.key.device_id || other.key == s.key)
      continue;
    facts.push_back({"also",
                     fmt::format("{}: {}", metric_words(other.key.metric), m.view->scale.bytes(other.used_bytes)),
                     Role::plain});
  }
}

void draw_detail_chart(Screen& screen, const Rect& r, const Model& m, const SeriesView& s) {
  const Span span = detail_span(m);
  Chart chart;
  chart.clock_is_relative = m.view->clock_is_relative;
  chart.scale = m.view->scale;
  chart.plane.from = span.from;
  chart.plane.to = span.to;
  if (m.feed.history) chart.points = m.feed.history(s.key, span.from, span.to + Duration{1}, chart_points(r.width));
  double low = 0;
  double high = 0;
  for (const Point& p : chart.points) {
    low = &p == &chart.points.front() ? p.min_bytes : std::min(low, p.min_bytes);
    high = std::max(high, p.max_bytes);
  }
  if (m.ui.fit_scale && !chart.points.empty()) {
    const double margin = std::max(0.05 * (high - low), kMiB);
    chart.plane.low_bytes = std::max(0.0, low - margin);
    chart.plane.high_bytes = high + margin;
  } else if (s.key.pid == 0 && s.device.capacity_bytes) {
    chart.plane.high_bytes = static_cast<double>(*s.device.capacity_bytes);
  } else {
    chart.plane.high_bytes = std::max(1.0, high * 1.1);
    // Show the range up to the wall, unless that is so far away that the past would look flat.
    constexpr double kFarthest = 10;
    if (const auto end = memory_end(*m.view, s); end && end->bytes < kFarthest * high)
      chart.plane.high_bytes = std::max(chart.plane.high_bytes, 1.05 * end->bytes);
  }
  chart.limit = memory_end(*m.view, s);
  const Finding& f = s.verdict.finding;
  chart.trend = trend_line(s);
  if (f.onset) chart.marks.push_back({*f.onset, U'^', Role::mark});
  for (const AlertRow& row : every_alert(m)) {
    if (!(row.key == s.key)) continue;
    if (row.alert.cleared) chart.marks.push_back({*row.alert.cleared, U'.', Role::good});
    chart.marks.push_back({row.alert.raised, U'!', Role::bad});
  }
  for (const Notice& notice : m.view->notices) chart.marks.push_back({notice.time, U'*', Role::notice});
  if (chart.marks.empty()) chart.marks.push_back({span.from - Duration{1}, U' ', Role::plain});  // keeps the row
  draw_chart(screen, r, chart);
}

}  // namespace

Span detail_extent(const Model& m) {
  const SeriesView* s = find(*m.view, m.ui.detail);
  Span all{m.view->time, m.view->time};
  if (s != nullptr)
    all = {s->first.value_or(all.from), std::max(s->last.value_or(all.to), s->ended ? all.from : all.to)};
  if (s != nullptr && s->ended && s->last) all.to = *s->last;
  if (m.feed.history_begin)
    if (const auto begin = m.feed.history_begin(m.ui.detail)) all.from = std::min(all.from, *begin);
  if (seconds_between(all.from, all.to) < kLeastSpan_s) all.from = all.to - from_seconds(kLeastSpan_s);
  return all;
}

Span detail_span(const Model& m) {
  const Span all = detail_extent(m);
  const double whole_s = seconds_between(all.from, all.to);
  const double span_s = m.ui.zoom_s <= 0 ? whole_s : std::clamp(m.ui.zoom_s, std::min(kLeastSpan_s, whole_s), whole_s);
  Timestamp to = m.ui.pan_end && m.ui.zoom_s > 0 ? std::min(*m.ui.pan_end, all.to) : all.to;
  Timestamp from = to - from_seconds(span_s);
  if (from < all.from) {
    from = all.from;
    to = from + from_seconds(span_s);
  }
  return {from, to};
}

void draw_detail(Screen& screen, const Rect& r, const Model& m) {
  const SeriesView* s = find(*m.view, m.ui.detail);
  if (s == nullptr) {
    screen.put(r.x + 1, r.y + 1, r.width - 2, "this series is no longer known; Esc goes back", Role::faint);
    return;
  }
  int x = r.x +
          screen.put(r.x, r.y, r.width * 2 / 5, s->key.pid == 0 ? device_words(*s) : process_words(*s), Role::title) +
          2;
  const ConclusionWords words = conclusion_words(*m.view, *s);
  x += put_conclusion(screen, x, r.y, r.right() - x, *s, words, m.view->scale);

  std::vector<Fact> facts;
  add_identity(facts, m, *s);
  add_sites(facts, m, *s);
  add_verdict(facts, m, *s, words);
  add_health(facts, m, *s);
  add_alerts(facts, m, *s);
  add_events(facts, m);
  add(facts, words.dissent);
  add_series(facts, m, *s);
  add(facts, words.advice);
  constexpr int kLabel = 11;
  std::vector<Fact> lines;
  for (const Fact& fact : facts) {
    if (fact.is_row) {
      lines.push_back(fact);
      continue;
    }
    bool first = true;
    for (std::string& line : wrap(fact.text, r.width - kLabel - 1)) {
      lines.push_back({first ? fact.label : std::string(), std::move(line), fact.role});
      first = false;
    }
  }
  const int chart = std::max(8, (r.height - 1) * 11 / 20);
  draw_detail_chart(screen, {r.x, r.y + 1, r.width, chart}, m, *s);
  const int y = r.y + 1 + chart;
  const int height = r.bottom() - y;
  const auto count = static_cast<int>(lines.size());
  const bool more = count > height;
  const int visible = more ? height - 1 : count;
  const int first = std::clamp(m.ui.detail_scroll, 0, std::max(0, count - visible));
  for (int i = 0; i < visible; ++i) {
    const Fact& line = lines[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)];
    screen.put(r.x + 1, y + i, kLabel - 2, line.label, Role::faint);
    screen.put(r.x + kLabel, y + i, r.width - kLabel, line.text, line.role);
  }
  if (more)
    screen.put(r.x + 1, r.bottom() - 1, r.width - 2,
               fmt::format("{} to {} of {} lines; ↑ ↓ scroll", first + 1, first + visible, count), Role::faint);
}

}  // namespace vramtrack::top

// Predict: for each GPU, the growth, its certainty, and the time at which memory runs out; for the selected one, the
// reason, the process, and what to do.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "report/conclusion.hpp"
#include "report/conclusion_words.hpp"
#include "report/words.hpp"
#include "top/chart.hpp"
#include "top/draw.hpp"
#include "top/rows.hpp"
#include "top/site_rows.hpp"

namespace vramtrack::top {
namespace {

struct Column {
  std::string_view head;
  int width;
  bool right;
  int least_screen;
  std::string (*words)(const DeviceRow&, const ConclusionWords&, const Scale&);
};

bool is_known(const DeviceRow& d) {
  return d.used != nullptr && d.used->verdict.finding.state != State::too_short;
}
const Finding& finding(const DeviceRow& d) {
  return d.used->verdict.finding;
}

std::string suspect_short(const DeviceRow& d, const ConclusionWords&, const Scale&) {
  if (!is_known(d) || !d.used->verdict.suspect) return {};
  const Suspect& s = *d.used->verdict.suspect;
  if (s.pid == 0) return "no visible process";
  return fmt::format("{} {}", s.pid, printable(s.command));
}

const std::array<Column, 10> kColumns = {
    {{"GPU", 7, false, 0, [](const DeviceRow& d, const ConclusionWords&, const Scale&) { return short_name(d); }},
     {"RISK", 9, false, 0,
      [](const DeviceRow& d, const ConclusionWords& words, const Scale&) {
        return d.used == nullptr ? std::string("not known") : words.word;
      }},
     {"GROWTH", 13, true, 0,
      [](const DeviceRow& d, const ConclusionWords&, const Scale& scale) {
        return is_known(d) ? scale.rate(finding(d).growth_bytes_per_s.mid) : std::string();
      }},
     {"R²", 5, true, 0,
      [](const DeviceRow& d, const ConclusionWords&, const Scale&) {
        return is_known(d) ? format_r_squared(finding(d).r_squared) : "";
      }},
     {"P(LEAK)", 9, true, 0,
      [](const DeviceRow& d, const ConclusionWords&, const Scale&) {
        return is_known(d) ? format_percent(finding(d).confidence) : "";
      }},
     {"OUT OF MEMORY IN", 26, false, 0,
      [](const DeviceRow& d, const ConclusionWords&, const Scale& scale) {
        if (!is_known(d)) return std::string();
        return finding(d).oom_in_s ? scale.eta(*finding(d).oom_in_s) : std::string("-");
      }},
     {"PATTERN", 14, false, 110,
      [](const DeviceRow& d, const ConclusionWords& words, const Scale&) {
        return is_known(d) && !words.pattern.empty() ? words.pattern : std::string("-");
      }},
     {"DETECTOR", 12, false, 150,
      [](const DeviceRow& d, const ConclusionWords&, const Scale&) {
        return is_known(d) ? finding(d).detector : std::string();
      }},
     {"FRAMEWORK", 12, false, 150,
      [](const DeviceRow& d, const ConclusionWords&, const Scale&) {
        return is_known(d) ? d.used->verdict.framework : std::string();
      }},
     {"SUSPECT", 0, false, 90, suspect_short}}};

void draw_table(Screen& screen, const Rect& r, const Model& m, const std::vector<DeviceRow>& all, int visible,
                int first) {
  const auto chosen = static_cast<int>(selected_device(m, all));
  for (int i = -1; i < visible; ++i) {
    const int y = r.y + 1 + i;
    int x = r.x + 1;
    const DeviceRow* d = i < 0 ? nullptr : &all[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)];
    const ConclusionWords words =
        d != nullptr && d->used != nullptr ? conclusion_words(*m.view, *d->used) : ConclusionWords{};
    if (d != nullptr)
      screen.link({r.x, y, r.width, 1}, {.to = Link::To::device, .series = {Metric::device_used, d->id, 0, 0}});
    for (const Column& c : kColumns) {
      if (screen.width() < c.least_screen) continue;
      const int width = c.head == "GROWTH" ? growth_width(m.view->scale) : c.width > 0 ? c.width : r.right() - x;
      if (width <= 0 || x + width > r.right()) break;
      const std::string text = d == nullptr ? std::string(c.head) : c.words(*d, words, m.view->scale);
      const bool judged = d != nullptr && d->used != nullptr && c.head != "SUSPECT" && c.head != "GPU";
      const Role role = d == nullptr         ? Role::faint
                        : !judged            ? Role::plain
                        : c.head == "RISK"   ? role_of(words.word_tone)
                        : c.head == "GROWTH" ? figure_role(words.growth_tone)
                                             : figure_role(words.word_tone);
      if (c.right)
        screen.put_right(x + width, y, width, text, role);
      else
        screen.put(x, y, width, text, role);
      x += width + 2;
    }
    if (first + i == chosen && i >= 0 && all.size() > 1) {
      screen.put(r.x, y, U'>', Role::key);
      screen.select({r.x, y, r.width, 1});
    }
  }
}

/// The leaking line of the suspected process, if known from its trace or from its run under the probe.
std::string suspected_line(const Model& m, const SeriesView& device) {
  const auto& suspect = device.verdict.suspect;
  if (!device.verdict.finding.leak || !suspect || suspect->pid == 0) return {};
  for (const SeriesView& s : m.view->series)
    if (s.key.pid == suspect->pid && !s.ended && !s.sites.empty()) return leaking_line(sites_of(s), m.view->scale);
  if (!m.feed.sites) return {};
  const SitesNow now = m.feed.sites(suspect->pid);
  return now.state == SitesNow::State::known ? leaking_line(now.report, m.view->scale) : std::string();
}

/// The lines below the chart, most important first.
std::vector<Fact> reasons(const Model& m, const SeriesView& s, const ConclusionWords& words) {
  std::vector<Fact> lines;
  // The ETA is already in the headline and in the table.
  if (!words.growth.empty())
    lines.push_back({"growth", fmt::format("{}, R² {}, probability of a leak {}, {}", words.growth,
                                           format_r_squared(Conclusion(*m.view, s).finding().r_squared),
                                           words.probability, words.pattern.empty() ? words.verdict : words.pattern)});
  if (std::string line = suspected_line(m, s); !line.empty()) lines.push_back({"line", std::move(line)});
  lines.insert(lines.end(), words.facts.begin(), words.facts.end());
  if (!words.next.empty()) lines.push_back({"next", words.next});
  // The next step already ends with the first piece of advice.
  std::copy_if(words.advice.begin(), words.advice.end(), std::back_inserter(lines),
               [&](const Fact& one) { return words.next.find(one.text) == std::string::npos; });
  return lines;
}

constexpr int kReasonLabel = 11;

/// The reasons in at most `most` lines: drops advice first, then the ends of the longest lines.
std::vector<Fact> reason_lines(const std::vector<Fact>& reasons, int width, int most) {
  std::size_t count = reasons.size();
  for (int each = 12;;) {
    std::vector<Fact> lines;
    for (std::size_t k = 0; k < count; ++k) {
      const Fact& reason = reasons[k];
      const auto wrapped = wrap(reason.text, width - kReasonLabel - 1);
      for (std::size_t i = 0; i < wrapped.size() && i < static_cast<std::size_t>(each); ++i) {
        const bool cut = i + 1 == static_cast<std::size_t>(each) && i + 1 < wrapped.size();
        const bool labelled = i == 0 && (k == 0 || reasons[k - 1].label != reason.label);
        lines.push_back({labelled ? reason.label : std::string(), wrapped[i] + (cut ? "…" : "")});
      }
    }
    if (static_cast<int>(lines.size()) <= most) return lines;
    if (count > 0 && (reasons[count - 1].label == "try" || reasons[count - 1].label == "causes")) {
      --count;
      continue;
    }
    if (each-- > 1) continue;
    // Even one line each is too much: keep growth, the leaking line (else because) and next.
    for (std::size_t k = lines.size(); k-- > 0 && static_cast<int>(lines.size()) > most;)
      if (k > 1 && lines[k].label != "next") lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(k));
    if (static_cast<int>(lines.size()) > most) lines.resize(static_cast<std::size_t>(std::max(0, most)));
    return lines;
  }
}

void draw_forecast(Screen& screen, const Rect& r, const Model& m, const DeviceRow& d) {
  const SeriesView& s = *d.used;
  const Finding& f = s.verdict.finding;
  Chart chart;
  chart.clock_is_relative = m.view->clock_is_relative;
  chart.scale = m.view->scale;
  const Timestamp now = s.last.value_or(m.view->time);
  Timestamp begin = s.first.value_or(now);
  if (m.feed.history_begin) begin = std::min(begin, m.feed.history_begin(s.key).value_or(begin));
  // Show enough of the past to see the onset, and enough of the future to distinguish the band from a line.
  double past_s = std::clamp(seconds_between(begin, now), 60.0, 6 * 3600.0);
  if (f.onset)
    past_s = std::min(std::max(60.0, seconds_between(begin, now)), 1.25 * seconds_between(*f.onset, now) + 300);
  double future_s = 0;
  if (f.oom_in_s && f.leak) future_s = std::min(1.05 * f.oom_in_s->high, std::max(2 * past_s, 1.1 * f.oom_in_s->mid));
  // Such a distant date is meaningless, and the sum must remain a valid time.
  constexpr double kFarthest_s = 10 * 365.25 * 86400;
  past_s = std::clamp(past_s, 60.0, kFarthest_s);
  future_s = future_s > 0 ? std::min(future_s, kFarthest_s) : 0;
  chart.plane.from = now - from_seconds(past_s);
  chart.plane.to = now + from_seconds(future_s);
  const auto used = static_cast<double>(s.used_bytes);
  double high = std::max(1.0, static_cast<double>(s.peak_bytes) * 1.1);
  if (s.device.capacity_bytes) high = std::max(static_cast<double>(*s.device.capacity_bytes), 1.0);
  chart.limit = memory_end(*m.view, s);
  chart.plane.high_bytes = high;
  if (m.feed.history) chart.points = m.feed.history(s.key, chart.plane.from, now + Duration{1}, chart_points(r.width));
  chart.trend = trend_line(s);
  if (future_s > 0 && chart.limit) chart.band = Band{now, used, chart.limit->bytes, *f.oom_in_s};
  if (f.onset) chart.marks.push_back({*f.onset, U'^', Role::mark});
  for (const Alert& alert : s.alerts) chart.marks.push_back({alert.raised, U'!', Role::bad});
  draw_chart(screen, r, chart);
}

void draw_legend(Screen& screen, int x, int y, int most, const Finding& f) {
  screen.put(x, y, most, fmt::format("⠤⠤ trend{}  ^ onset  ! alert", f.oom_in_s ? "  ⢕⢕ predicted range" : ""),
             Role::faint);
}

}  // namespace

void draw_outlook(Screen& screen, const Rect& r, const Model& m, const DeviceRow& d, bool concludes) {
  const int name =
      screen.put(r.x, r.y, r.width - 2, d.used != nullptr ? device_words(*d.used) : short_name(d), Role::title);
  if (d.used == nullptr) {
    screen.put(r.x + 1, r.y + 2, r.width - 2, "the whole device's use is unknown; see its processes (d)", Role::faint);
    return;
  }
  const Finding& f = d.used->verdict.finding;
  const ConclusionWords words = conclusion_words(*m.view, *d.used);
  int x = r.x + name + 2;
  if (concludes) x += put_conclusion(screen, x, r.y, std::max(0, r.right() - x), *d.used, words, m.view->scale) + 2;
  // The chart keeps the rows that it needs; the reasons use the rest.
  const auto lines = reason_lines(reasons(m, *d.used, words), r.width, r.height - std::max(9, r.height * 11 / 20));
  const auto wanted = static_cast<int>(lines.size());
  if (f.onset && r.right() - x >= 46) draw_legend(screen, x, r.y, r.right() - x, f);
  draw_forecast(screen, {r.x, r.y + 1, r.width, r.height - 1 - wanted}, m, d);
  for (int i = 0; i < wanted; ++i) {
    const Fact& line = lines[static_cast<std::size_t>(i)];
    const int y = r.bottom() - wanted + i;
    screen.put(r.x + 1, y, kReasonLabel - 2, line.label, Role::faint);
    screen.put(r.x + kReasonLabel, y, r.width - kReasonLabel, line.text);
  }
}

void draw_predict(Screen& screen, const Rect& r, const Model& m) {
  const auto all = devices(*m.view);
  const auto count = static_cast<int>(all.size());
  const auto chosen = static_cast<int>(selected_device(m, all));
  int visible = std::min(count, std::max(1, r.height - 13));
  const bool more = visible < count;
  if (more) --visible;
  const int first = first_row(count, chosen, visible);
  draw_table(screen, r, m, all, visible, first);
  if (more)
    screen.put(r.x + 1, r.y + 1 + visible, r.width - 2,
               fmt::format("{} to {} of {} GPUs; Tab shows more", first + 1, first + visible, count), Role::faint);
  const int table = visible + 1 + (more ? 1 : 0);
  Rect below{r.x, r.y + table, r.width, r.height - table};
  if (below.height > 16) {
    ++below.y;
    --below.height;
  }
  draw_outlook(screen, below, m, all[static_cast<std::size_t>(chosen)], true);
}

}  // namespace vramtrack::top

// The alerts, including those of earlier programs if a store kept them.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "report/conclusion_words.hpp"
#include "top/draw.hpp"
#include "top/rows.hpp"

namespace vramtrack::top {
namespace {

std::string status_words(const Model& m, const AlertRow& row, const AlertWords& words) {
  const Alert& a = row.alert;
  const bool seen = m.acknowledged.contains({row.key, a.raised});
  if (a.ended == AlertEnd::standing && m.silenced.contains({row.key, a.raised})) return "silenced";
  return a.ended == AlertEnd::standing && seen ? "acknowledged" : words.state;
}

}  // namespace

void draw_alerts(Screen& screen, const Rect& r, const Model& m) {
  const auto rows = alerts(m);
  const Scale& scale = m.view->scale;
  if (rows.empty()) {
    int y = r.y + 1;
    for (const std::string& line : wrap(no_alert_words(m), r.width - 2))
      if (y < r.bottom()) screen.put(r.x + 1, y++, r.width - 2, line, Role::good);
    return;
  }
  // On a narrow screen, the pattern is shown only below.
  const bool wide = r.width >= 100;
  const int severity = r.x + 2 + clock_width(scale) + 1;
  const int growth = severity + 26;
  const int pattern = growth + growth_width(scale) + 3;
  const std::array<int, 6> at = {r.x + 2, severity, severity + 13, pattern, growth, pattern + (wide ? 17 : 0)};
  const std::array<std::string_view, 6> heads = {"RAISED", "SEVERITY", "STATUS", "PATTERN", "GROWTH", "WHO"};
  for (std::size_t i = 0; i < heads.size(); ++i)
    if (i != 3 || wide) screen.put(at[i], r.y, std::min(14, r.right() - at[i]), heads[i], Role::faint);
  const auto chosen = static_cast<int>(selected_alert(m, rows));
  const int below = std::clamp(r.height / 3, 6, 12);
  const int height = r.height - 1 - below;
  const auto count = static_cast<int>(rows.size());
  const int visible = std::min(count, height);
  const int first = first_row(count, chosen, visible);
  for (int i = 0; i < visible; ++i) {
    const AlertRow& row = rows[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)];
    const Alert& a = row.alert;
    const int y = r.y + 1 + i;
    const bool open = a.ended == AlertEnd::standing && !m.acknowledged.contains({row.key, a.raised});
    const AlertWords words = alert_words(a, scale);
    const Role role = open ? role_of(words.tone) : Role::faint;
    screen.put(at[0], y, clock_width(scale), clock_words(a.raised, *m.view), Role::plain);
    screen.put(at[1], y, 12, words.severity, role);
    screen.put(at[2], y, 14, status_words(m, row, words), role);
    if (wide) screen.put(at[3], y, 15, words.what, Role::plain);
    if (a.kind == AlertKind::leak)
      screen.put_right(at[4] + growth_width(scale), y, growth_width(scale),
                       scale.rate(a.finding.growth_bytes_per_s.mid), Role::plain);
    screen.put(at[5], y, r.right() - at[5], row.who, Role::plain);
    screen.link({r.x, y, r.width, 1}, {.to = Link::To::alert, .series = row.key, .at = a.raised});
    if (first + i == chosen) {
      screen.put(r.x, y, U'>', Role::key);
      screen.select({r.x, y, r.width, 1});
    }
  }
  const AlertRow& row = rows[static_cast<std::size_t>(chosen)];
  const Alert& a = row.alert;
  const AlertWords words = alert_words(a, scale);
  int y = r.bottom() - below + 1;
  const auto put = [&](std::string_view label, const std::string& text, Role role = Role::plain) {
    bool begin = true;
    for (const std::string& line : wrap(text, r.width - 13)) {
      if (y >= r.bottom()) return;
      if (begin) screen.put(r.x + 1, y, 10, label, Role::faint);
      screen.put(r.x + 12, y, r.width - 12, line, role);
      begin = false;
      ++y;
    }
  };
  put("who", row.who, Role::title);
  std::string raised = m.view->moment(a.raised) + ", " + words.what;
  if (a.kind == AlertKind::stall && a.finding.onset)
    raised += ", no progress since " + m.view->moment(*a.finding.onset);
  if (a.kind == AlertKind::leak) raised += ", " + scale.rate(a.finding.growth_bytes_per_s);
  if (!words.figures.empty()) raised += ", " + words.figures;
  put("raised", raised);
  if (const auto silenced = m.silenced.find({row.key, a.raised}); silenced != m.silenced.end())
    put("silenced", silenced->second == Timestamp::max()
                        ? "by the configuration: nobody is notified"
                        : fmt::format("until {}: nobody is notified", m.view->moment(silenced->second)));
  if (a.ended == AlertEnd::standing) {
    const SeriesView* s = find(*m.view, row.key);
    const ConclusionWords now = s != nullptr ? conclusion_words(*m.view, *s) : ConclusionWords{};
    if (!now.forecast.empty()) put("now", now.forecast, role_of(now.tone));
  } else {
    put("ended", a.cleared ? fmt::format("{}: {}", m.view->moment(*a.cleared), words.ended) : words.ended);
  }
  put("because", printable(a.finding.because));
}

}  // namespace vramtrack::top

// Overview: every GPU, and below them who is on them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/format.hpp"
#include "report/words.hpp"
#include "top/accounting.hpp"
#include "top/chart.hpp"
#include "top/draw.hpp"
#include "top/rows.hpp"

namespace vramtrack::top {
namespace {

constexpr double kSparkSpan_s = 3600;  ///< of the small histories here
constexpr std::string_view kSparkSpanWords = "1h";

std::string used_words(const DeviceRow& d) {
  if (d.used == nullptr) return "not known";
  const auto used = static_cast<double>(d.used->used_bytes);
  return d.any->device.capacity_bytes ? format_bytes_of(used, static_cast<double>(*d.any->device.capacity_bytes))
                                      : format_bytes(used);
}

std::string growth_words(const SeriesView& s) {
  return s.verdict.finding.state == State::too_short ? "" : format_rate(s.verdict.finding.growth_bytes_per_s.mid);
}

/// Only the number: the unit is in the table's head.
std::string growth_figure(const SeriesView& s) {
  const std::string words = growth_words(s);
  return words.substr(0, words.find(' '));
}

void draw_bar(Screen& screen, int x, int y, int width, const DeviceRow& d) {
  if (d.used == nullptr || !d.any->device.capacity_bytes || *d.any->device.capacity_bytes == 0 || width < 3) return;
  const double share = std::clamp(
      static_cast<double>(d.used->used_bytes) / static_cast<double>(*d.any->device.capacity_bytes), 0.0, 1.0);
  const int full = static_cast<int>(std::lround(share * width));
  const Role role = d.used->verdict.finding.leak
                        ? state_role(*d.used) == Role::critical ? Role::bad : state_role(*d.used)
                        : Role::bar;
  for (int i = 0; i < width; ++i) screen.put(x + i, y, i < full ? U'█' : U'░', i < full ? role : Role::faint);
}

void draw_spark(Screen& screen, const Rect& r, const Model& m, const DeviceRow& d) {
  if (d.used == nullptr || r.empty() || !m.feed.history) return;
  const Timestamp to = m.view->time;
  const Timestamp from = to - from_seconds(kSparkSpan_s);
  const auto points = m.feed.history(d.used->key, from, to, chart_points(r.width));
  double high = static_cast<double>(d.used->peak_bytes);
  if (d.any->device.capacity_bytes) high = static_cast<double>(*d.any->device.capacity_bytes);
  draw_history(screen, r, {from, to, 0, std::max(high, 1.0)}, points);
}

/// "! failing" beside the name of a device that is not well, or "!" where there is less room. Its width; 0 for none.
int put_condition(Screen& screen, int x, int y, int room, const Model& m, const DeviceRow& d) {
  if (d.used == nullptr) return 0;
  const Condition condition = judge_health(*d.used, m.view->time).condition;
  const Role role = condition_role(condition);
  if (role == Role::plain || room < 1) return 0;
  const std::string words = fmt::format("! {}", to_string(condition));
  return screen.put(x, y, room, columns_of(words) <= room ? words : "!", role);
}

/// One row a device: name, bar, used, history, growth, conclusion.
void draw_device_line(Screen& screen, const Rect& r, const Model& m, const DeviceRow& d) {
  const int spark = std::clamp((r.width - 44) / 5, 7, 30);
  const int bar = std::clamp((r.width - 51) / 4, 7, 30);
  int x = r.x;
  const int name = screen.put(x, r.y, 8, short_name(d), Role::title);
  put_condition(screen, x + name + 1, r.y, std::min(1, 7 - name), m, d);
  x += 8;
  draw_bar(screen, x, r.y, bar, d);
  x += bar + 1;
  screen.put_right(x + 15, r.y, 15, used_words(d));
  x += 16;
  draw_spark(screen, {x, r.y, spark, 1}, m, d);
  x += spark + 1;
  if (d.used == nullptr) return;
  screen.put_right(x + 13, r.y, 13, growth_words(*d.used));
  x += 14;
  // Short, where there is little room: severity and ETA, with its interval if that fits.
  const Finding& f = d.used->verdict.finding;
  const int room = r.right() - x;
  if (room >= 48 || !f.leak || !f.oom_in_s) {
    put_conclusion(screen, x, r.y, room, *d.used);
    return;
  }
  const std::string severity = std::string(severity_word(d.used->verdict.severity)) + ' ';
  std::string words = severity + format_eta(*f.oom_in_s);
  if (columns_of(words) > room) words = severity + format_eta({f.oom_in_s->mid, f.oom_in_s->mid, f.oom_in_s->mid});
  screen.put(x, r.y, room, words, state_role(*d.used));
}

/// A device with room: headline, figures, accounting where there is a row for it, and a history beside or below.
void draw_device_card(Screen& screen, const Rect& r, const Model& m, const DeviceRow& d, bool only) {
  const int name = screen.put(r.x, r.y, std::max(20, r.width / 2 - 2),
                              d.used != nullptr ? device_words(*d.used) : short_name(d), Role::title);
  if (d.used != nullptr) {
    constexpr int kConclusion = 44;  // a whole ETA with its interval goes before the word
    int x = r.x + name + 2;
    const int sign = put_condition(screen, x, r.y, std::max(1, r.right() - x - kConclusion - 2), m, d);
    if (sign > 0) x += sign + 2;
    put_conclusion(screen, x, r.y, r.right() - x, *d.used);
  }
  const int bar = std::clamp(r.width / 3, 20, 60);
  int x = r.x + 2;
  draw_bar(screen, x, r.y + 1, bar, d);
  x += bar + 1;
  x += screen.put(x, r.y + 1, 20, used_words(d)) + 2;
  if (d.used != nullptr) x += screen.put(x, r.y + 1, 14, growth_words(*d.used), state_role(*d.used)) + 2;
  if (d.used != nullptr && d.used->utilisation_ratio)
    x += screen.put(x, r.y + 1, 14, format_percent(*d.used->utilisation_ratio) + " busy", Role::faint) + 2;
  if (r.height == 2) {
    draw_spark(screen, {x, r.y + 1, std::min(60, r.right() - x), 1}, m, d);
    return;
  }
  // The only device's accounting is said by the table below anyway.
  const int told = only ? 2 : 3;
  if (!only) screen.put(r.x + 2, r.y + 2, r.width - 2, accounting_words(account(*m.view, d.id)), Role::faint);
  if (r.height == told) {
    draw_spark(screen, {x, r.y + 1, std::min(60, r.right() - x), 1}, m, d);
    return;
  }
  const Rect history{r.x + 2, r.y + told, r.width - 2, r.height - told};
  draw_spark(screen, {history.x, history.y, history.width - 10, history.height}, m, d);
  screen.put(history.right() - 8, history.bottom() - 1, 8, "last " + std::string(kSparkSpanWords), Role::faint);
}

// --- processes -----------------------------------------------------------------------------------------------

enum class Column : std::uint8_t { device, pid, user, framework, memory, growth, state, eta, started, place, command };
struct ColumnInfo {
  Column column;
  std::string_view head;
  int width;
  bool right;
  int least_screen;  ///< shown from this screen width on
};
constexpr std::array<ColumnInfo, 11> kColumns = {{{Column::device, "GPU", 3, false, 0},
                                                  {Column::pid, "PID", 7, true, 0},
                                                  {Column::user, "USER", 8, false, 0},
                                                  {Column::framework, "FRAMEWORK", 9, false, 0},
                                                  {Column::memory, "MEMORY", 8, true, 0},
                                                  {Column::growth, "MiB/min", 7, true, 0},
                                                  {Column::state, "STATE", 9, false, 0},
                                                  {Column::eta, "FULL IN", 22, false, 130},
                                                  {Column::started, "STARTED", 12, false, 0},
                                                  {Column::place, "JOB/CONTAINER", 16, false, 104},
                                                  {Column::command, "COMMAND", 0, false, 0}}};

std::vector<ColumnInfo> columns_for(int width, const std::vector<DeviceRow>& all) {
  const bool named = std::any_of(all.begin(), all.end(), [](const DeviceRow& d) { return !d.any->device.index; });
  std::vector<ColumnInfo> out;
  for (ColumnInfo c : kColumns) {
    if (width < c.least_screen || (c.column == Column::device && all.size() < 2)) continue;
    if (c.column == Column::device && named) c.width = 8;  // "MIG 3f2a"
    if (width < 104 && c.column == Column::started) c.width = 7;
    if (width >= 120 && c.column == Column::user) c.width = 12;
    if (width >= 120 && c.column == Column::framework) c.width = 13;
    out.push_back(c);
  }
  return out;
}

std::string started_words(const Model& m, const SeriesView& s, int width) {
  const auto at = started(m, s);
  if (!at) return {};
  std::string words = clock_words(at->time, m.view->time, m.view->clock_is_relative);
  // In a narrow table minutes have to do, or the day: "08:22:35" and "01-05 08:22" are too wide.
  if (columns_of(words) > width - 1 && !m.view->clock_is_relative) words.resize(5);
  return at->at_most ? "≤" + words : words;
}

void draw_cell(Screen& screen, const ColumnInfo& c, int x, int y, int width, const Model& m, const SeriesView& s,
               const std::vector<DeviceRow>& all) {
  const ProcessInfo none;
  const ProcessInfo& p = s.process ? *s.process : none;
  const auto put = [&](const std::string& text, Role role = Role::plain) {
    if (c.right)
      screen.put_right(x + width, y, width, text, role);
    else
      screen.put(x, y, width, text, role);
  };
  switch (c.column) {
    case Column::device: {
      const auto d = std::find_if(all.begin(), all.end(), [&](const DeviceRow& r) { return r.id == s.key.device_id; });
      if (d == all.end()) return;
      return put(d->any->device.index ? std::to_string(*d->any->device.index) : short_name(*d));
    }
    case Column::pid:
      return put(std::to_string(s.key.pid));
    case Column::user:
      return put(printable(p.user));
    case Column::framework:
      return put(p.framework);
    case Column::memory:
      return put(format_bytes(static_cast<double>(s.used_bytes)));
    case Column::growth:
      return put(growth_figure(s), state_role(s));
    case Column::state:
      return put(s.ignored ? "ignored" : std::string(state_word(s)), state_role(s));
    case Column::eta:
      return put(s.verdict.finding.oom_in_s ? format_eta(*s.verdict.finding.oom_in_s) : "", state_role(s));
    case Column::started:
      return put(started_words(m, s, width), Role::faint);
    case Column::place:
      return put(place_words(p), Role::faint);
    case Column::command: {
      const std::string place = m.view->clock_is_relative || x > 92 ? "" : place_words(p);
      return put((place.empty() ? "" : place + ": ") + printable(p.command.empty() ? p.name : p.command));
    }
  }
}

void draw_processes(Screen& screen, const Rect& r, const Model& m, const std::vector<DeviceRow>& all) {
  const auto rows = processes(m);
  const auto cursor = selected_process(m, rows);
  const DeviceRow& device = all[selected_device(m, all)];
  // The rule between the two halves carries the accounting of the selected device.
  std::string title = fmt::format("{}: {}", short_name(device), accounting_words(account(*m.view, device.id)));
  const int x = screen.put(r.x, r.y, r.width, title, Role::title);
  std::string order = fmt::format("by {}{}", sort_name(m.ui.sort), m.ui.reversed ? ", reversed" : "");
  if (m.ui.this_device_only) order += fmt::format(", {} only", short_name(device));
  if (!m.ui.filter.empty()) order += fmt::format(", filter: {}", printable(m.ui.filter));
  if (r.width - x - 2 >= columns_of(order)) screen.put_right(r.right(), r.y, r.width, order, Role::faint);

  const auto shown = columns_for(r.width, all);
  const auto each = [&](auto&& visit) {
    int at = r.x + 1;
    for (const ColumnInfo& c : shown) {
      const int width = c.width > 0 ? c.width : r.right() - at;
      if (width <= 0 || at + width > r.right()) break;
      visit(c, at, width);
      at += width + 1;
    }
  };
  each([&](const ColumnInfo& c, int at, int width) {
    if (c.right)
      screen.put_right(at + width, r.y + 1, width, c.head, Role::faint);
    else
      screen.put(at, r.y + 1, width, c.head, Role::faint);
  });
  const int height = r.height - 2;
  const auto count = static_cast<int>(rows.size());
  if (count == 0) {
    screen.put(r.x + 1, r.y + 2, r.width - 2,
               m.ui.filter.empty() ? "no process is visible on these GPUs" : "no process passes the filter",
               Role::faint);
    return;
  }
  const bool more = count > height;
  const int visible = more ? height - 1 : height;  // the last row says how many are left out
  const int first = first_row(count, cursor ? static_cast<int>(*cursor) : 0, visible);
  for (int i = 0; i < std::min(visible, count); ++i) {
    const SeriesView& s = *rows[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)];
    const int y = r.y + 2 + i;
    each([&](const ColumnInfo& c, int at, int width) { draw_cell(screen, c, at, y, width, m, s, all); });
    if (cursor && static_cast<int>(*cursor) == first + i) {
      if (!screen.at(r.x, y).written) screen.put(r.x, y, U'>', Role::key);
      screen.select({r.x, y, r.width, 1});
    }
  }
  if (more)
    screen.put(r.x + 1, r.bottom() - 1, r.width - 2,
               fmt::format("{} to {} of {} processes", first + 1, first + std::min(visible, count), count),
               Role::faint);
}

}  // namespace

void draw_overview(Screen& screen, const Rect& r, const Model& m) {
  const auto all = devices(*m.view);
  const auto count = static_cast<int>(all.size());
  // As many rows a device as fit into somewhat more than half of the screen; the table keeps at least eight.
  const int room = std::max(3, std::min(r.height - 8, r.height * 11 / 20));
  const int rows = std::clamp(room / std::max(1, count), 1, count == 1 ? 9 : 6);
  const int height = rows == 1 ? 1 : rows;
  const int visible = std::min(count, room / height);
  const auto chosen = static_cast<int>(selected_device(m, all));
  const int first = first_row(count, chosen, visible);
  for (int i = 0; i < visible; ++i) {
    const int y = r.y + i * height;
    const DeviceRow& d = all[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)];
    if (first + i == chosen && count > 1) {
      screen.put(r.x, y, U'>', Role::key);
      if (!m.ui.process) screen.select({r.x, y, r.width, 1});
    }
    const Rect card{r.x + 1, y, r.width - 1, height};
    if (height == 1)
      draw_device_line(screen, card, m, d);
    else
      draw_device_card(screen, card, m, d, count == 1);
  }
  int y = r.y + visible * height;
  if (visible < count) {
    screen.put(r.x + 1, y, r.width - 2,
               fmt::format("{} to {} of {} GPUs; Tab shows more", first + 1, first + visible, count), Role::faint);
    ++y;
  }
  if (r.bottom() - y > 10) ++y;
  draw_processes(screen, {r.x, y, r.width, r.bottom() - y}, m, all);
}

}  // namespace vramtrack::top

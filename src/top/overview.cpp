// Overview: every GPU, and below them their processes. The outlook of the selected GPU is beside the GPUs on a wide
// screen, and between GPUs and processes on a tall one.
#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"
#include "report/conclusion_words.hpp"
#include "top/device_cards.hpp"
#include "top/draw.hpp"
#include "top/gauges.hpp"
#include "top/process_table.hpp"
#include "top/rows.hpp"

namespace vramtrack::top {
namespace {

/// From this size on, there is room for the outlook next to the list of GPUs, filling that side.
constexpr int kWideWidth = 150;
constexpr int kWideHeight = 34;
constexpr int kLeastListed = 3;
constexpr int kLeastBeside = 18;   ///< the fewest rows of the outlook there
constexpr int kLeastOutlook = 12;  ///< the fewest rows for a readable chart and reasons
constexpr int kHigh = 30;          ///< from this height on, part of the processes is enough
constexpr int kLeastTable = 6;     ///< the fewest rows for readable processes, with title and headings

/// The layout of the upper part.
struct Arrangement {
  int rows = 1;     ///< rows per device
  int visible = 0;  ///< number of visible devices
  int first = 0;
  bool heads = false;
};

Arrangement arrange(int room, int most_rows, const std::vector<DeviceRow>& all, int chosen) {
  const auto count = static_cast<int>(all.size());
  Arrangement out;
  out.rows = std::clamp(room / std::max(1, count), 1, most_rows);
  const bool words =
      std::any_of(all.begin(), all.end(), [](const DeviceRow& d) { return d.used != nullptr && has_gauges(*d.used); });
  out.heads = out.rows == 1 && words && room > 2;
  out.visible = std::min(count, (room - (out.heads ? 1 : 0)) / out.rows);
  out.first = first_row(count, chosen, out.visible);
  return out;
}

/// Draws the devices of `a` from the top of `r`, and their number if some are left out. Returns the rows used.
int draw_devices(Screen& screen, const Rect& r, const Model& m, const std::vector<DeviceRow>& all, const Arrangement& a,
                 CardStyle style) {
  const auto count = static_cast<int>(all.size());
  const auto chosen = static_cast<int>(selected_device(m, all));
  int y = r.y;
  if (a.heads) draw_device_heads(screen, {r.x + 1, y++, r.width - 1, 1}, m);
  for (int i = 0; i < a.visible; ++i, y += a.rows) {
    const DeviceRow& d = all[static_cast<std::size_t>(a.first) + static_cast<std::size_t>(i)];
    if (a.first + i == chosen && count > 1) {
      screen.put(r.x, y, U'>', Role::key);
      if (!m.ui.process) screen.select({r.x, y, r.width, 1});
    }
    const Rect card{r.x + 1, y, r.width - 1, a.rows};
    if (a.rows == 1)
      draw_device_line(screen, card, m, d);
    else
      draw_device_card(screen, card, m, d, style);
    screen.link({r.x, y, r.width, a.rows}, {.to = Link::To::device, .series = {Metric::device_used, d.id, 0, 0}});
  }
  if (a.visible < count)
    screen.put(r.x + 1, y++, r.width - 2,
               fmt::format("{} to {} of {} GPUs; Tab shows more", a.first + 1, a.first + a.visible, count),
               Role::faint);
  return y - r.y;
}

/// Draws recent events if the list of devices leaves room: alerts, then notices from sources.
void draw_lately(Screen& screen, const Rect& r, const Model& m) {
  if (r.height < 4) return;
  screen.put(r.x, r.y, r.width, "Lately", Role::title);
  int y = r.y + 1;
  const int clock = clock_width(m.view->scale);
  const auto put = [&](Timestamp time, const std::string& words, Role role) {
    if (y >= r.bottom()) return;
    screen.put(r.x + 2, y, clock, clock_words(time, *m.view), Role::faint);
    screen.put(r.x + 2 + clock, y, r.width - 2 - clock, words, role);
    ++y;
  };
  for (const AlertRow& row : alerts(m)) {
    if (y >= r.bottom() - 1) break;  // one row is kept for the events
    const AlertWords words = alert_words(row.alert, m.view->scale);
    screen.link({r.x, y, r.width, 1}, {.to = Link::To::alert, .series = row.key, .at = row.alert.raised});
    put(row.alert.raised, fmt::format("{} {}, {}", words.severity, words.state, row.who), figure_role(words.tone));
  }
  const auto& notices = m.view->notices;
  for (std::size_t i = notices.size(); i > 0; --i)  // the most recent first
    put(notices[i - 1].time, printable(notices[i - 1].text), Role::notice);
  if (y > r.y + 1) return;
  for (const std::string& line : wrap(no_alert_words(m), r.width - 2))
    if (y < r.bottom()) screen.put(r.x + 2, y++, r.width - 2, line, Role::good);
}

/// Draws the upper part of a large screen. Returns the rows used.
int draw_beside(Screen& screen, const Rect& r, const Model& m, const std::vector<DeviceRow>& all) {
  const auto chosen = selected_device(m, all);
  // The table gets the rows that it needs, up to half; few processes leave more for the charts.
  const auto table = static_cast<int>(processes(m).size()) + 4;
  const int room = std::max(r.height - table, r.height * 11 / 20);
  const int left = r.width * 12 / 25;
  const Arrangement a = arrange(room, 7, all, static_cast<int>(chosen));
  const int listed = draw_devices(screen, {r.x, r.y, left, room}, m, all, a, {});
  const int taken = std::max({listed, kLeastBeside, room});
  draw_lately(screen, {r.x + 1, r.y + listed + 1, left - 1, taken - listed - 1}, m);
  for (int y = r.y; y < r.y + taken; ++y) screen.put(r.x + left + 1, y, U'│', Role::faint);
  draw_outlook(screen, {r.x + left + 3, r.y, r.width - left - 3, taken}, m, all[chosen], false);
  return taken;
}

int least_outlook(const Rect& r) {
  return r.height >= kHigh ? r.height * 2 / 5 : kLeastOutlook;
}

/// Rows for the GPUs on a tall screen, leaving enough for the outlook and the processes; 0: there is no room.
int rows_above_outlook(const Rect& r, int devices, int processes) {
  int table = std::max(processes + 3, kLeastTable);
  if (r.height >= kHigh) table = std::min(table, r.height / 3);
  const int room = r.height - table - least_outlook(r) - 1;
  return room > devices ? std::min(room, devices * 3) : 0;
}

/// Draws the upper part of a tall screen. Returns the rows used.
int draw_above(Screen& screen, const Rect& r, const Model& m, const std::vector<DeviceRow>& all, int room) {
  const auto chosen = selected_device(m, all);
  const Arrangement a = arrange(room, 3, all, static_cast<int>(chosen));
  const int listed = draw_devices(screen, {r.x, r.y, r.width, room}, m, all, a, {.only = all.size() == 1}) + 1;
  const int table = std::max(static_cast<int>(processes(m).size()) + 4, kLeastTable);
  const int outlook = std::max(least_outlook(r), r.height - listed - table);
  draw_outlook(screen, {r.x, r.y + listed, r.width, outlook}, m, all[chosen], false);
  return listed + outlook;
}

}  // namespace

void draw_overview(Screen& screen, const Rect& r, const Model& m) {
  const auto all = devices(*m.view);
  const auto count = static_cast<int>(all.size());
  int taken = 0;
  if (r.width >= kWideWidth && r.height >= kWideHeight && count >= kLeastListed) {
    taken = draw_beside(screen, r, m, all);
  } else if (const int above = rows_above_outlook(r, count, static_cast<int>(processes(m).size())); above > 0) {
    taken = draw_above(screen, r, m, all, above);
  } else {
    // As many rows per device as fit into somewhat more than half of the screen; the table keeps at least eight.
    const int room = std::max(3, std::min(r.height - 8, r.height * 11 / 20));
    const Arrangement a = arrange(room, count == 1 ? 9 : 6, all, static_cast<int>(selected_device(m, all)));
    taken = draw_devices(screen, r, m, all, a, {.only = count == 1, .history = true});
  }
  int y = r.y + taken;
  if (r.bottom() - y > 10) ++y;
  draw_processes(screen, {r.x, y, r.width, r.bottom() - y}, m, all);
}

}  // namespace vramtrack::top

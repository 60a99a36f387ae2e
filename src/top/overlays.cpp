// Overlays above a page: the help, and the confirmation of a signal.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/format.hpp"
#include "top/draw.hpp"
#include "top/rows.hpp"

namespace vramtrack::top {
namespace {

/// A cleared box in the middle of `area` with a frame; returns its inside.
Rect draw_box(Screen& screen, const Rect& area, int width, int height, std::string_view title) {
  const Rect box{area.x + (area.width - width) / 2, area.y + std::max(0, (area.height - height) / 2),
                 std::min(width, area.width), std::min(height, area.height)};
  screen.clear({box.x - 1, box.y, box.width + 2, box.height});
  const int right = box.right() - 1;
  const int bottom = box.bottom() - 1;
  const int taken = screen.put(box.x + 2, box.y, box.width - 4, title, Role::title);
  for (int x = box.x + 1; x < right; ++x) {
    if (x < box.x + 2 || x >= box.x + 2 + taken) screen.put(x, box.y, U'─', Role::faint);
    screen.put(x, bottom, U'─', Role::faint);
  }
  for (int y = box.y + 1; y < bottom; ++y) {
    screen.put(box.x, y, U'│', Role::faint);
    screen.put(right, y, U'│', Role::faint);
  }
  screen.put(box.x, box.y, U'┌', Role::faint);
  screen.put(right, box.y, U'┐', Role::faint);
  screen.put(box.x, bottom, U'└', Role::faint);
  screen.put(right, bottom, U'┘', Role::faint);
  return {box.x + 2, box.y + 1, box.width - 4, box.height - 2};
}

struct HelpLine {
  std::string_view key;
  std::string_view what;
};

constexpr auto kHelp = std::to_array<HelpLine>({
    {"", "Pages"},
#define VRAMTRACK_PAGE(name, key, keys, help) {keys, help},
#include "top/pages.def"
#undef VRAMTRACK_PAGE
    {"Esc", "back: to now, then to the previous page"},
    {"q", "quit"},
    {"", "Choose"},
    {"Tab, Shift-Tab", "next, previous GPU"},
    {"0 to 9", "the GPU with that number"},
    {"↑ ↓, PgUp PgDn", "select a process; the GPU itself is above the first"},
    {"g", "only the processes of this GPU, or all"},
    {"/", "filter by pid, user, command, framework or job"},
    {"s, S", "sort by the next column; in reverse order"},
    {"mouse", "click selects and sorts, double click opens, wheel scrolls"},
    {"m", "give the mouse back to the terminal, or take it"},
    {"", "Detail"},
    {"+ -", "zoom in, out; z shows all"},
    {"← →", "pan; End: jump to now, Home: to the beginning"},
    {"y", "scale: up to the capacity, or up to the highest value"},
    {"", "Act"},
    {"a", "acknowledge the selected alert (alerts)"},
    {"k", "send the selected process a signal; asks first"},
    {"p", "freeze the display; watching continues"},
    {"t", "next theme"},
    {"?, h", "this help"},
    {"", "Replay and simulation"},
    {"Space, p", "pause, resume"},
    {"[ ]", "halve, double the speed"},
    {"n, N", "to the next alert; to the previous one"},
    {"R", "restart"},
    {"", "Words"},
    {"CRITICAL", "a leak; memory runs out within one hour"},
    {"WARNING", "a leak; memory runs out within 24 hours"},
    {"LEAK", "a leak; memory runs out later, or when is unknown"},
    {"growing", "rises; too early to tell a leak from a warm-up"},
    {"suspected", "rises like a leak; an alert follows when it is certain enough"},
    {"slow", "rises; takes more than 7 days to run out"},
    {"warming", "rises and slows down towards a level"},
    {"spiked", "one jump, held since: not a leak"},
    {"steady cycling", "healthy; falling is healthy, too"},
    {"0h 24m (19m–30m)", "out of memory in: median, 10th and 90th percentile"},
    {"≤08:22", "started then or before: the exact time is not known"},
    {"GPU%, CPU%", "share of time its kernels ran; share of one CPU core"},
    {"TMP, PWR", "temperature; power drawn, and its limit"},
    {"BUS", "share of time GPU memory was read or written"},
    {"-", "the driver does not report it"},
    {"driver", "memory the driver itself uses, in addition to the processes'"},
    {"! degraded", "a GPU slowed by heat or power, or waiting for a reset"},
    {"! failing", "memory errors or a hardware fault; d shows which"},
    {"", "Under a chart"},
    {"^  !  .  *", "growth began, alert raised, alert ended, event"},
});

/// If steps are counted, an hour is the number of steps in sixty readings (docs/formats/logs.md).
std::string help_words(const HelpLine& line, const Scale& scale) {
  const bool critical = line.key == "CRITICAL";
  if (!scale.counts_steps() || (!critical && line.key != "WARNING")) return std::string(line.what);
  return "a leak; memory runs out within " + scale.duration((critical ? 1 : 24) * 3600.0);
}

}  // namespace

void draw_help(Screen& screen, const Rect& area, const Model& m) {
  const int width = std::min(area.width - 4, 84);
  const auto count = static_cast<int>(kHelp.size());
  const Rect r = draw_box(screen, area, width, std::min(area.height, count + 3), " Keys and words ");
  const int visible = std::min(count, r.height - 1);
  const int first = std::clamp(m.ui.help_scroll, 0, count - visible);
  for (int i = 0; i < visible; ++i) {
    const HelpLine& line = kHelp[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)];
    const int y = r.y + i;
    if (line.key.empty()) {
      screen.put(r.x, y, r.width, line.what, Role::title);
    } else {
      screen.put(r.x + 1, y, 16, line.key, Role::key);
      screen.put(r.x + 18, y, r.width - 18, help_words(line, m.view->scale));
    }
  }
  screen.put(r.x, r.bottom() - 1, r.width, visible < count ? "↑ ↓ more; any other key closes" : "any key closes",
             Role::faint);
}

void draw_signal_dialog(Screen& screen, const Rect& area, const Model& m) {
  const SignalTarget& t = *m.ui.target;
  const Rect r = draw_box(screen, area, std::min(area.width - 4, 76), 14, " Send a signal ");
  int y = r.y + 1;
  const auto put = [&](std::string_view label, const std::string& text, int lines) {
    screen.put(r.x, y, 9, label, Role::faint);
    const auto wrapped = wrap(text, r.width - 10);
    for (int i = 0; i < lines; ++i, ++y)
      if (static_cast<std::size_t>(i) < wrapped.size())
        screen.put(r.x + 10, y, r.width - 10,
                   wrapped[static_cast<std::size_t>(i)] +
                       (i + 1 == lines && wrapped.size() > static_cast<std::size_t>(lines) ? " …" : ""),
                   label == "command" ? Role::title : Role::plain);
  };
  put("pid", std::to_string(t.pid), 1);
  put("user", t.user.empty() ? std::string("not known") : t.user, 1);
  put("command", t.command, 2);
  put("started", t.started, 1);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    const int row = r.y + 7 + static_cast<int>(i);
    const bool chosen = static_cast<int>(i) == m.ui.signal;
    screen.put(r.x, row, 2, chosen ? ">" : " ", Role::key);
    screen.put(r.x + 2, row, 6, kSignals[i].name, chosen ? Role::bad : Role::plain);
    screen.put(r.x + 10, row, r.width - 10, kSignals[i].help, Role::faint);
    if (chosen) screen.select({r.x, row, r.width, 1});
  }
  y = r.bottom() - 1;
  int x = r.x;
  x += screen.put(x, y, 2, "y", Role::key) + 1;
  x += screen.put(x, y, r.width,
                  fmt::format("send {} to {}", kSignals[static_cast<std::size_t>(m.ui.signal)].name, t.pid)) +
       3;
  x += screen.put(x, y, 6, "↑ ↓", Role::key) + 1;
  x += screen.put(x, y, 16, "another signal", Role::faint) + 3;
  x += screen.put(x, y, 6, "Esc", Role::key) + 1;
  screen.put(x, y, r.right() - x, "send nothing", Role::faint);
}

}  // namespace vramtrack::top

#include "top/draw.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/local_time.hpp"
#include "report/headline.hpp"
#include "top/keys.hpp"
#include "top/rows.hpp"

namespace vramtrack::top {
namespace {

void draw_too_small(Screen& screen) {
  const std::string text = fmt::format("vramtrack top needs {}x{}; this is {}x{}", kLeastWidth, kLeastHeight,
                                       screen.width(), screen.height());
  const std::string more = "make the window larger, or press q";
  if (screen.height() <= 0) return;
  screen.put(0, 0, screen.width(), text, Role::notice);
  if (screen.height() > 1) screen.put(0, 1, screen.width(), more, Role::plain);
}

std::string mode_words(const Model& m) {
  switch (m.mode) {
    case Mode::live:
      return fmt::format("live {}, every {}", m.source, m.view->scale.duration(m.interval_s));
    case Mode::agent:
      return m.simulated.empty() ? "live from " + printable(m.source)
                                 : fmt::format("SIMULATION {}, {}", printable(m.simulated), printable(m.source));
    case Mode::replay:
      return "REPLAY " + printable(m.source);
    case Mode::simulation:
      return "SIMULATION " + printable(m.source);
  }
  return {};
}

std::string playback_words(const PlaybackState& p, const Scale& scale) {
  if (p.ended) return "at the end";
  if (p.jumping) return "to the next alert…";
  if (!p.playing) return "paused";
  if (scale.counts_steps()) return fmt::format("{:.3g} {}/s", p.speed / scale.step_s, plural(scale.step));
  return p.speed >= 1 ? fmt::format("{:.0f}x", p.speed) : fmt::format("{:g}x", p.speed);
}

void draw_head(Screen& screen, const Rect& r, const Model& m) {
  const View& view = *m.view;
  // Shows the day if there is room for it.
  std::string right;
  if (!view.series.empty() && view.clock_is_relative)
    right = clock_words(view.time, view);
  else if (!view.series.empty())
    // Show the zone here, once for the whole screen; a complete time in UTC includes it.
    right = r.width < 110 ? clock_words(view.time, view) : view.moment(view.time);
  if (!right.empty() && !view.clock_is_relative && !right.ends_with('Z')) right += ' ' + zone_name(view.time);
  if (m.playback) right = playback_words(*m.playback, view.scale) + "  " + right;
  if (m.ui.paused && !m.playback) right = "PAUSED  " + right;
  std::string mode = mode_words(m);
  const std::string first_word = mode.substr(0, mode.find(' '));
  const int mode_end = r.right() - columns_of(right) - 2;
  // A user who mistakes a recording for live data is misled, so its first word, "REPLAY", takes precedence.
  const bool is_present = m.mode == Mode::live || m.mode == Mode::agent;
  const int end = is_present ? r.right() : mode_end - columns_of(first_word) - 2;

  int x = r.x + screen.put(r.x, r.y, r.width, "vramtrack", Role::title) + 2;
  const Machine machine = machine_of(view);
  const auto put = [&](const std::string& words, Role role) {
    if (x < end) x += screen.put(x, r.y, end - x, words, role) + 2;
  };
  put(format_count(machine.devices, "GPU"), Role::plain);
  if (machine.matter != Matter::no_device) put(machine.words, role_of(machine.tone));
  if (const std::size_t open = open_alerts(m); open > 0)
    put(fmt::format("{} alert{}", open, open == 1 ? "" : "s"), Role::bad);
  // Truncated text ends in "…", which would replace the word's last letter.
  if (mode_end - x < columns_of(first_word) + 2) mode = first_word;
  if (x < mode_end) screen.put(x, r.y, mode_end - x, mode, m.mode == Mode::live ? Role::faint : Role::notice);
  screen.put_right(r.right(), r.y, std::max(0, r.right() - x), right, Role::plain);
}

/// The key for a word in the footer; 0 if it names two.
char32_t single_key(std::string_view name) {
  if (name == "Esc") return kEscape;
  if (name == "Tab") return kTab;
  if (name == "Space") return U' ';
  return name.size() == 1 ? static_cast<char32_t>(static_cast<unsigned char>(name.front())) : U'\0';
}

void put_keys(Screen& screen, const Rect& r, const std::vector<std::pair<std::string_view, std::string_view>>& keys) {
  int x = r.x;
  for (const auto& [key, what] : keys) {
    const int wide = columns_of(key) + columns_of(what) + 1;
    if (x + wide > r.right()) break;
    if (const char32_t code = single_key(key); code != 0)
      screen.link({x, r.y, wide, 1}, {.to = Link::To::key, .key = code});
    x += screen.put(x, r.y, r.right() - x, key, Role::key) + 1;
    x += screen.put(x, r.y, r.right() - x, what, Role::faint) + 2;
  }
}

void draw_foot(Screen& screen, const Rect& r, const Model& m) {
  if (m.ui.editing_filter) {
    const int x = r.x + screen.put(r.x, r.y, r.width, "filter: ", Role::key);
    const int end = x + screen.put(x, r.y, r.right() - x - 34, m.ui.filter + "_");
    screen.put(end + 2, r.y, r.right() - end - 2, "Enter keeps it, Esc discards it", Role::faint);
    return;
  }
  if (!m.ui.message.empty()) {
    screen.put(r.x, r.y, r.width, m.ui.message, Role::notice);
    return;
  }
  using Key = std::pair<std::string_view, std::string_view>;
  std::vector<Key> keys = {{"?", "help"}, {"q", "quit"}};
  const auto add = [&keys](std::initializer_list<Key> more) {
    for (const Key& key : more) keys.push_back(key);
  };
  if (m.ui.page != Page::overview) add({{"Esc", "back"}});
  switch (m.ui.page) {
    case Page::overview:
      add({{"P", "predict"}, {"d", "detail"}, {"A", "alerts"}});
      break;
    case Page::predict:
      add({{"d", "detail"}, {"A", "alerts"}});
      break;
    case Page::detail:
      add({{"+ -", "zoom"}, {"← →", "pan"}, {"z", "all"}, {"y", "scale"}});
      break;
    case Page::alerts:
      add({{"a", "acknowledge"}, {"d", "detail"}});
      break;
    default:  // a page without its own keys
      break;
  }
  if (m.playback) add({{"Space", m.playback->playing ? "stop" : "play"}, {"[ ]", "speed"}, {"n", "next alert"}});
  if (m.ui.page == Page::overview && !m.playback)
    add({{"/", "filter"}, {"s", "sort"}, {"k", "signal"}, {"p", m.ui.paused ? "resume" : "pause"}});
  if (m.ui.page == Page::overview || m.ui.page == Page::predict) add({{"Tab", "next GPU"}});
  put_keys(screen, r, keys);
}

}  // namespace

int first_row(int rows, int selected, int height) {
  if (rows <= height || height <= 0) return 0;
  return std::clamp(selected - height / 2, 0, rows - height);
}

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(text.size(), blank + 1));
    if (word.empty()) continue;
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > std::max(1, width))
      lines.push_back(std::exchange(line, {}));
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

int put_conclusion(Screen& screen, int x, int y, int most, const SeriesView& series, const ConclusionWords& phrases,
                   const Scale& scale) {
  std::string words = phrases.headline;
  if (phrases.severity.empty()) {
    if (!phrases.forecast.empty()) words += ", " + phrases.forecast;
    return screen.put(x, y, most, words, role_of(phrases.tone));
  }
  // Put the severity first, for a quick reader, then the deadline, the process, and its name, as far as there is
  // room.
  words = phrases.severity;
  const auto& oom_in_s = series.verdict.finding.oom_in_s;
  if (oom_in_s && columns_of(words) + 2 + columns_of(phrases.forecast) > most) {
    words += ' ' + scale.eta(*oom_in_s);
    if (columns_of(words) > most)
      words = phrases.severity + ' ' + scale.eta({oom_in_s->mid, oom_in_s->mid, oom_in_s->mid});
  } else {
    for (const std::string* part : {&phrases.forecast, &phrases.by, &phrases.pattern})
      if (!part->empty() && columns_of(words) + 2 + columns_of(*part) <= most) words += ", " + *part;
  }
  return screen.put(x, y, most, words, role_of(phrases.tone));
}

void draw(Screen& screen, const Model& model) {
  if (screen.width() < kLeastWidth || screen.height() < kLeastHeight) return draw_too_small(screen);
  const Rect all = screen.all();
  draw_head(screen, {0, 0, all.width, 1}, model);
  const Rect page{0, 1, all.width, all.height - 2};
  if (model.view->series.empty()) {
    const bool none_chosen = !model.only.gpus.empty() && !model.known_gpus.empty();
    screen.put(2, 3, all.width - 4,
               none_chosen ? fmt::format("no GPU is named {}; there are: {}", fmt::join(model.only.gpus, " or "),
                                         model.known_gpus)
                           : "no samples yet",
               none_chosen ? Role::notice : Role::faint);
  } else {
    switch (model.ui.page) {
#define VRAMTRACK_PAGE(name, key, keys, help) \
  case Page::name:                            \
    draw_##name(screen, page, model);         \
    break;
#include "top/pages.def"
#undef VRAMTRACK_PAGE
    }
  }
  draw_foot(screen, {0, all.height - 1, all.width, 1}, model);
  if (model.ui.help) draw_help(screen, page, model);
  if (model.ui.target) draw_signal_dialog(screen, page, model);
}

}  // namespace vramtrack::top

#include "top/keys.hpp"

#include <algorithm>

#include "top/draw.hpp"
#include "top/rows.hpp"
#include "top/screen.hpp"
#include "top/theme.hpp"

namespace vramtrack::top {
namespace {

constexpr int kPage = 10;
constexpr std::size_t kLongestFilter = 64;

void open_detail(Model& m);

void select_device(Model& m, int step) {
  const auto all = devices(*m.view);
  if (all.empty()) return;
  const auto count = static_cast<int>(all.size());
  const int next = (static_cast<int>(selected_device(m, all)) + step + count) % count;
  m.ui.device_id = all[static_cast<std::size_t>(next)].id;
  m.ui.process.reset();
}

void show_device(Model& m, const std::string& id) {
  m.ui.device_id = id;
  m.ui.process.reset();
  if (m.ui.page == Page::detail) open_detail(m);
}

/// Selects the GPU with this index.
void select_index(Model& m, int index) {
  for (const DeviceRow& d : devices(*m.view))
    if (d.any->device.index == index) return show_device(m, d.id);
  m.ui.message = "there is no GPU with that number";
}

void move_process(Model& m, int step) {
  const auto rows = processes(m);
  if (rows.empty()) return;
  const auto at = selected_process(m, rows);
  const int next = (at ? static_cast<int>(*at) : -1) + step;
  if (next < 0) {
    m.ui.process.reset();
    return;
  }
  m.ui.process = rows[static_cast<std::size_t>(std::min(next, static_cast<int>(rows.size()) - 1))]->key;
}

void move_alert(Model& m, int step) {
  const auto rows = alerts(m);
  if (rows.empty()) return;
  const int next = std::clamp(static_cast<int>(selected_alert(m, rows)) + step, 0, static_cast<int>(rows.size()) - 1);
  const AlertRow& row = rows[static_cast<std::size_t>(next)];
  m.ui.alert = AlertId{row.key, row.alert.raised};
}

void open_page(Model& m, Page page) {
  if (m.ui.page != Page::detail) m.ui.back = m.ui.page;
  m.ui.page = page;
  m.ui.detail_scroll = 0;
}

void open_detail(Model& m) {
  const auto all = devices(*m.view);
  if (all.empty()) return;
  if (m.ui.page == Page::alerts) {
    const auto rows = alerts(m);
    if (rows.empty()) return;
    m.ui.detail = rows[selected_alert(m, rows)].key;
  } else if (m.ui.process && m.ui.page == Page::overview && find(*m.view, *m.ui.process) != nullptr) {
    m.ui.detail = *m.ui.process;
  } else {
    m.ui.detail = all[selected_device(m, all)].any->key;
  }
  m.ui.zoom_s = 0;
  m.ui.pan_end.reset();
  open_page(m, Page::detail);
}

/// Zooms around the middle, or around the current time while the chart follows it.
void zoom(Model& m, double factor) {
  const Span all = detail_extent(m);
  const Span shown = detail_span(m);
  const double whole_s = seconds_between(all.from, all.to);
  const double span_s = std::clamp(seconds_between(shown.from, shown.to) * factor, std::min(10.0, whole_s), whole_s);
  if (m.ui.pan_end) {
    const Timestamp middle = shown.from + (shown.to - shown.from) / 2;
    m.ui.pan_end = std::min(all.to, middle + from_seconds(span_s / 2));
  }
  m.ui.zoom_s = span_s >= whole_s ? 0 : span_s;
  if (m.ui.zoom_s <= 0) m.ui.pan_end.reset();
}

void pan(Model& m, double share) {
  if (m.ui.zoom_s <= 0) {
    m.ui.message = "the whole range is shown; + zooms in";
    return;
  }
  const Span all = detail_extent(m);
  const Span shown = detail_span(m);
  const double span_s = seconds_between(shown.from, shown.to);
  // Limit it to the whole history, no matter how far the key would go.
  const double step_s =
      std::clamp(span_s * share, -seconds_between(all.from, all.to), seconds_between(all.from, all.to));
  const Timestamp to = shown.to + from_seconds(step_s);
  if (to >= all.to)
    m.ui.pan_end.reset();
  else
    m.ui.pan_end = std::max(to, all.from + from_seconds(span_s));
}

void edit_filter(Model& m, Key key) {
  std::string& filter = m.ui.filter;
  switch (key) {
    case kEscape:
      filter.clear();
      m.ui.editing_filter = false;
      return;
    case kEnter:
      m.ui.editing_filter = false;
      return;
    case kBackspace:
      while (!filter.empty() && (static_cast<unsigned char>(filter.back()) & 0xc0U) == 0x80U) filter.pop_back();
      if (!filter.empty()) filter.pop_back();
      return;
    default:
      break;
  }
  const bool special = key >= 0xe000 && key <= 0xf8ff;
  if (!special && key >= 0x20 && columns_of(key) > 0 && filter.size() < kLongestFilter) append_utf8(filter, key);
  m.ui.process.reset();
}

Request in_signal_dialog(Model& m, Key key) {
  Request request;
  const auto count = static_cast<int>(kSignals.size());
  if (key == kUp || key == kBackTab) {
    m.ui.signal = (m.ui.signal + count - 1) % count;
  } else if (key == kDown || key == kTab) {
    m.ui.signal = (m.ui.signal + 1) % count;
  } else if (key == U'y' || key == U'Y') {
    request.send_signal = m.ui.signal;
  } else if (key == kEscape || key == U'n' || key == U'q') {
    m.ui.target.reset();
    request.drop_signal = true;
    m.ui.message = "nothing was sent";
  }
  return request;
}

bool in_playback(Model& m, Key key, Request& request) {
  if (!m.playback) return false;
  switch (key) {
    case U' ':
    case U'p':
      request.play = Play::toggle;
      return true;
    case U'[':
      request.play = Play::slower;
      return true;
    case U']':
      request.play = Play::faster;
      return true;
    case U'n':
      request.play = Play::next_alert;
      return true;
    case U'N':
      request.play = Play::previous_alert;
      return true;
    case U'R':
      request.play = Play::restart;
      return true;
    default:
      return false;
  }
}

/// Opens the page for `key`. False if it is not the key of a page.
bool opens_page(Model& m, Key key) {
#define VRAMTRACK_PAGE(name, opening, keys, help) \
  if ((opening) != 0 && key == (opening)) {       \
    open_page(m, Page::name);                     \
    return true;                                  \
  }
#include "top/pages.def"
#undef VRAMTRACK_PAGE
  return false;
}

/// Keys that mean the same on every page. True if `key` was one.
bool anywhere(Model& m, Key key, Request& request) {
  switch (key) {
    case U'q':
      request.quit = true;
      return true;
    case 0x0c:  // Ctrl-L
      request.redraw = true;
      return true;
    case U'?':
    case U'h':
      m.ui.help = true;
      m.ui.help_scroll = 0;
      return true;
    case U'd':
    case kEnter:
      if (m.ui.page != Page::detail) open_detail(m);
      return true;
    case U'm':
      m.ui.mouse = !m.ui.mouse;
      m.ui.message = m.ui.mouse ? "the mouse selects rows here; hold Shift to select text"
                                : "the mouse belongs to the terminal again";
      return true;
    case U't':
      if (m.no_colour) {
        m.ui.message = "NO_COLOR is set: no colours";
      } else {
        m.ui.theme = (m.ui.theme + 1) % static_cast<int>(themes().size());
        m.ui.message = "theme: " + std::string(themes()[static_cast<std::size_t>(m.ui.theme)].name);
      }
      return true;
    case kTab:
    case kBackTab:
      select_device(m, key == kTab ? 1 : -1);
      if (m.ui.page == Page::detail) open_detail(m);
      return true;
    case U'p':
      m.ui.paused = !m.ui.paused;
      return true;
    default:
      return opens_page(m, key);
  }
}

void on_overview(Model& m, Key key, Request& request) {
  switch (key) {
    case kUp:
    case kDown:
      return move_process(m, key == kDown ? 1 : -1);
    case kPageUp:
    case kPageDown:
      return move_process(m, key == kPageDown ? kPage : -kPage);
    case kHome:
      m.ui.process.reset();
      return;
    case kEnd:
      return move_process(m, 1 << 20);
    case U'/':
      m.ui.editing_filter = true;
      return;
    case kEscape:
      m.ui.filter.clear();
      m.ui.process.reset();
      return;
    case U's':
      m.ui.sort = static_cast<Sort>((static_cast<std::size_t>(m.ui.sort) + 1) % kSorts);
      return;
    case U'S':
      m.ui.reversed = !m.ui.reversed;
      return;
    case U'g':
      m.ui.this_device_only = !m.ui.this_device_only;
      return;
    case U'k':
    case U'K':
      if (!m.ui.process || find(*m.view, *m.ui.process) == nullptr)
        m.ui.message = "choose a process with the arrow keys first";
      else
        request.ask_signal = *m.ui.process;
      return;
    default:
      return;
  }
}

void on_detail(Model& m, Key key, Request& request) {
  switch (key) {
    case U'+':
    case U'=':
      return zoom(m, 0.5);
    case U'-':
      return zoom(m, 2);
    case U'z':
      m.ui.zoom_s = 0;
      m.ui.pan_end.reset();
      return;
    case kLeft:
      return pan(m, -0.25);
    case kRight:
      return pan(m, 0.25);
    case kHome:
      return pan(m, -1e6);
    case kEnd:
      m.ui.pan_end.reset();
      return;
    case U'y':
      m.ui.fit_scale = !m.ui.fit_scale;
      return;
    case kUp:
      m.ui.detail_scroll = std::max(0, m.ui.detail_scroll - 1);
      return;
    case kDown:
      m.ui.detail_scroll = std::min(m.ui.detail_scroll + 1, 1000);
      return;
    case U'k':
    case U'K':
      if (m.ui.detail.pid == 0)
        m.ui.message = "this is a GPU; choose a process on the overview";
      else
        request.ask_signal = m.ui.detail;
      return;
    case kEscape:
      if (m.ui.pan_end)
        m.ui.pan_end.reset();  // first return to now
      else
        m.ui.page = m.ui.back == Page::detail ? Page::overview : m.ui.back;
      return;
    default:
      return;
  }
}

void on_alerts(Model& m, Key key, Request& request) {
  const auto rows = alerts(m);
  switch (key) {
    case kUp:
    case kDown:
      return move_alert(m, key == kDown ? 1 : -1);
    case kPageUp:
    case kPageDown:
      return move_alert(m, key == kPageDown ? kPage : -kPage);
    case kHome:
    case kEnd:
      return move_alert(m, key == kEnd ? 1 << 20 : -(1 << 20));
    case U'a': {
      if (rows.empty()) return;
      const AlertRow& row = rows[selected_alert(m, rows)];
      request.acknowledge = AlertId{row.key, row.alert.raised};
      return;
    }
    case kEscape:
      m.ui.page = Page::overview;
      return;
    default:
      return;
  }
}

}  // namespace

Request handle(Model& m, Key key) {
  Request request;
  if (key == kResize) return request;
  m.ui.message.clear();
  if (m.ui.target) return in_signal_dialog(m, key);
  if (m.ui.editing_filter) {
    edit_filter(m, key);
    return request;
  }
  if (m.ui.help) {
    if (key == kUp || key == kDown || key == kPageUp || key == kPageDown) {
      const int step = key == kUp ? -1 : key == kDown ? 1 : key == kPageUp ? -kPage : kPage;
      m.ui.help_scroll = std::clamp(m.ui.help_scroll + step, 0, 100);
    } else {
      m.ui.help = false;
    }
    return request;
  }
  if (in_playback(m, key, request) || anywhere(m, key, request)) return request;
  if (key >= U'0' && key <= U'9') {
    select_index(m, static_cast<int>(key - U'0'));
    return request;
  }
  switch (m.ui.page) {
    case Page::overview:
      on_overview(m, key, request);
      break;
    case Page::predict:
      if (key == kEscape) m.ui.page = Page::overview;
      if (key == kUp || key == kDown) select_device(m, key == kDown ? 1 : -1);
      break;
    case Page::detail:
      on_detail(m, key, request);
      break;
    case Page::alerts:
      on_alerts(m, key, request);
      break;
    default:
      if (key == kEscape) m.ui.page = Page::overview;
      break;
  }
  return request;
}

Request handle(Model& m, const Pointer& pointer, const Screen& shown) {
  using Did = Pointer::Did;
  if (pointer.did == Did::wheel_up || pointer.did == Did::wheel_down)
    return handle(m, pointer.did == Did::wheel_up ? kUp : kDown);
  if (m.ui.help || m.ui.editing_filter) return handle(m, kEnter);
  // Only keys confirm a signal, so that an accidental click sends nothing.
  if (m.ui.target) return {};
  const Link* link = shown.link_at(pointer.x, pointer.y);
  if (link == nullptr) return {};
  m.ui.message.clear();
  switch (link->to) {
    case Link::To::key:
      return handle(m, link->key);
    case Link::To::device:
      show_device(m, link->series.device_id);
      break;
    case Link::To::process:
      m.ui.process = link->series;
      m.ui.device_id = link->series.device_id;
      break;
    case Link::To::alert:
      m.ui.alert = AlertId{link->series, link->at.value_or(Timestamp{})};
      break;
    case Link::To::sort: {
      const auto sort = static_cast<Sort>(link->sort);
      m.ui.reversed = m.ui.sort == sort && !m.ui.reversed;
      m.ui.sort = sort;
      return {};
    }
  }
  if (pointer.did == Did::double_press && m.ui.page != Page::detail) return handle(m, kEnter);
  return {};
}

}  // namespace vramtrack::top

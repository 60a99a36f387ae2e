// The process table of the overview.
#include "top/process_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/format.hpp"
#include "core/what_runs.hpp"
#include "report/accounting.hpp"
#include "report/conclusion_words.hpp"
#include "top/draw.hpp"
#include "top/gauges.hpp"

namespace vramtrack::top {
namespace {

/// Whether rates are in MiB/min.
bool has_usual_rates(const Scale& scale) {
  return !scale.counts_steps() && scale.counts_bytes();
}

std::string growth_figure(const SeriesView& s, const Scale& scale) {
  if (s.verdict.finding.state == State::too_short) return {};
  const double rate = s.verdict.finding.growth_bytes_per_s.mid;
  return has_usual_rates(scale) ? format_mib_per_min(rate) : scale.rate(rate);
}

enum class Column : std::uint8_t {
  device,
  pid,
  user,
  framework,
  memory,
  growth,
  state,
  eta,
  gpu,
  cpu,
  host,
  started,
  place,
  command
};
struct ColumnInfo {
  Column column;
  std::string_view head;
  int width;
  bool right;
  int least_screen;  ///< shown from this screen width on
  std::optional<Sort> sort = std::nullopt;
  bool load = false;  ///< only if processes' activity is known
};
constexpr std::array<ColumnInfo, 14> kColumns = {{{Column::device, "GPU", 3, false, 0},
                                                  {Column::pid, "PID", 7, true, 0, Sort::pid},
                                                  {Column::user, "USER", 8, false, 0, Sort::user},
                                                  {Column::framework, "FRAMEWORK", 9, false, 0},
                                                  {Column::memory, "MEMORY", 8, true, 0, Sort::memory},
                                                  {Column::growth, "MiB/min", 7, true, 0, Sort::growth},
                                                  {Column::state, "STATE", 9, false, 0, Sort::severity},
                                                  {Column::eta, "OUT OF MEMORY IN", 22, false, 130, Sort::severity},
                                                  {Column::gpu, "GPU%", 4, true, 0, Sort::gpu, true},
                                                  {Column::cpu, "CPU%", 4, true, 0, Sort::cpu, true},
                                                  {Column::host, "HOST MEM", 8, true, 100, std::nullopt, true},
                                                  {Column::started, "STARTED", 12, false, 0, Sort::started},
                                                  {Column::place, "JOB/CONTAINER", 16, false, 116},
                                                  {Column::command, "COMMAND", 0, false, 0}}};

/// From this width on, the start is shown next to the activity.
constexpr int kStartedBesideLoad = 96;

std::vector<ColumnInfo> columns_for(const View& view, int width, const std::vector<DeviceRow>& all) {
  const bool loads = std::any_of(view.series.begin(), view.series.end(),
                                 [](const SeriesView& s) { return !(s.load == ProcessLoad{}); });
  const bool named = std::any_of(all.begin(), all.end(), [](const DeviceRow& d) { return !d.any->device.index; });
  const bool in_containers = std::any_of(view.series.begin(), view.series.end(), [](const SeriesView& s) {
    return s.process && !container_words(*s.process).empty();
  });
  std::vector<ColumnInfo> out;
  for (ColumnInfo c : kColumns) {
    if (width < c.least_screen || (c.column == Column::device && all.size() < 2)) continue;
    if (c.load && !loads) continue;
    if (c.column == Column::place && !in_containers) continue;
    if (c.column == Column::started && loads && width < kStartedBesideLoad) continue;
    if (c.column == Column::device && named) c.width = 8;  // "MIG 3f2a"
    if (c.column == Column::growth && !has_usual_rates(view.scale)) {
      c.head = "GROWTH";
      c.width = std::max(growth_width(view.scale), 16);
    }
    if (width < 116 && c.column == Column::started) c.width = 7;
    if (view.scale.counts_steps() && c.column == Column::started) c.width = clock_width(view.scale) + 1;
    if (width >= 120 && c.column == Column::user) c.width = 12;
    if (width >= 120 && c.column == Column::framework) c.width = 13;
    out.push_back(c);
  }
  // The command distinguishes the programs: so other columns make room for it, the least important first.
  const int least_command = width >= 100 ? 24 : 14;
  const auto room = [&] {
    return std::accumulate(out.begin(), out.end(), width - 1,
                           [](int left, const ColumnInfo& c) { return left - c.width - (c.width > 0 ? 1 : 0); });
  };
  for (const Column c : {Column::started, Column::host, Column::place, Column::cpu, Column::gpu, Column::user})
    if (room() < least_command) std::erase_if(out, [c](const ColumnInfo& one) { return one.column == c; });
  return out;
}

std::string started_words(const Model& m, const SeriesView& s, int width) {
  const auto at = started(m, s);
  if (!at) return {};
  std::string words = clock_words(at->time, *m.view);
  // A narrow table shows only minutes, or the day: "08:22:35" and "01-05 08:22" are too wide.
  if (columns_of(words) > width - 1 && !m.view->clock_is_relative) words.resize(5);
  return at->at_most ? "≤" + words : words;
}

void draw_cell(Screen& screen, const ColumnInfo& c, int x, int y, int width, const Model& m, const SeriesView& s,
               const ConclusionWords& words, const std::vector<DeviceRow>& all, bool wide) {
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
      return put(m.view->scale.bytes(s.used_bytes));
    case Column::growth:
      return put(growth_figure(s, m.view->scale), figure_role(words.growth_tone));
    case Column::state:
      return put(words.word, role_of(words.word_tone));
    case Column::eta:
      return put(s.verdict.finding.oom_in_s ? m.view->scale.eta(*s.verdict.finding.oom_in_s) : "",
                 figure_role(words.word_tone));
    case Column::gpu:
      return put(percent_figure(s.load.gpu_ratio));
    case Column::cpu:
      return put(percent_figure(s.load.cpu_ratio));
    case Column::host:
      return put(s.load.host_bytes ? m.view->scale.bytes(*s.load.host_bytes) : "-");
    case Column::started:
      return put(started_words(m, s, width), Role::faint);
    case Column::place:
      return put(container_words(p), Role::faint);
    case Column::command: {
      const std::string place = m.view->clock_is_relative || wide ? "" : container_words(p);
      return put((place.empty() ? "" : place + ": ") +
                 printable(p.command.empty() ? p.name : short_command(p.command)));
    }
  }
}

/// The filters as text: "GPU 0 only, user ada, pid 4242, filter: train"; empty if all are listed.
std::string filter_words(const Model& m, const DeviceRow& device) {
  std::string out;
  const auto add = [&](const std::string& words) { out += (out.empty() ? "" : ", ") + words; };
  if (m.ui.this_device_only) add(short_name(device) + " only");
  if (!m.only.users.empty()) add(fmt::format("user {}", fmt::join(m.only.users, ", ")));
  if (!m.only.pids.empty()) add(fmt::format("pid {}", fmt::join(m.only.pids, ", ")));
  if (!m.ui.filter.empty()) add("filter: " + m.ui.filter);
  return printable(out);
}

std::string none_words(const Model& m) {
  if (!m.ui.filter.empty()) return "no process matches the filter";
  std::string filters;
  if (!m.only.users.empty()) filters = fmt::format(" of user {}", fmt::join(m.only.users, " or "));
  if (!m.only.pids.empty()) filters += fmt::format(" with pid {}", fmt::join(m.only.pids, " or "));
  return fmt::format("no process{} is visible on {}", printable(filters),
                     m.only.gpus.empty() ? "these GPUs" : "the chosen GPUs");
}

}  // namespace

void draw_processes(Screen& screen, const Rect& r, const Model& m, const std::vector<DeviceRow>& all) {
  const auto rows = processes(m);
  const auto cursor = selected_process(m, rows);
  const DeviceRow& device = all[selected_device(m, all)];
  // The rule between the two halves shows the accounting of the selected device.
  std::string title = fmt::format("{}: {}", short_name(device),
                                  accounting_words(account(*m.view, device_key(device.any->key)), m.view->scale));
  const int x = screen.put(r.x, r.y, r.width, title, Role::title);
  // Show filters at any width: otherwise a process that is filtered out looks like one that has ended.
  const std::string filters = filter_words(m, device);
  // The title is about one GPU, but the rows are about all of them.
  const bool all_devices = all.size() > 1 && !m.ui.this_device_only;
  std::string order = fmt::format("{}by {}{}", all_devices ? "below: all GPUs, " : "", sort_name(m.ui.sort),
                                  m.ui.reversed ? ", reversed" : "");
  if (!filters.empty()) order += ", " + filters;
  const std::string brief = !filters.empty() ? "filtered" : all_devices ? "below: all GPUs" : "";
  for (const std::string& words : {order, filters, brief}) {
    if (r.width - x - 2 < columns_of(words)) continue;
    screen.put_right(r.right(), r.y, r.width, words, filters.empty() ? Role::faint : Role::notice);
    break;
  }

  const auto shown = columns_for(*m.view, r.width, all);
  const bool wide = std::any_of(shown.begin(), shown.end(), [](const auto& c) { return c.column == Column::place; });
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
    const Role role = c.sort == m.ui.sort && c.column != Column::eta ? Role::title : Role::faint;
    if (c.right)
      screen.put_right(at + width, r.y + 1, width, c.head, role);
    else
      screen.put(at, r.y + 1, width, c.head, role);
    if (c.sort) screen.link({at, r.y + 1, width, 1}, {.to = Link::To::sort, .sort = static_cast<int>(*c.sort)});
  });
  const int height = r.height - 2;
  const auto count = static_cast<int>(rows.size());
  if (count == 0) {
    screen.put(r.x + 1, r.y + 2, r.width - 2, none_words(m), Role::faint);
    return;
  }
  const bool more = count > height;
  const int visible = more ? height - 1 : height;  // the last row shows how many are left out
  const int first = first_row(count, cursor ? static_cast<int>(*cursor) : 0, visible);
  for (int i = 0; i < std::min(visible, count); ++i) {
    const SeriesView& s = *rows[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)];
    const int y = r.y + 2 + i;
    const ConclusionWords words = conclusion_words(*m.view, s);
    each([&](const ColumnInfo& c, int at, int width) { draw_cell(screen, c, at, y, width, m, s, words, all, wide); });
    screen.link({r.x, y, r.width, 1}, {.to = Link::To::process, .series = s.key});
    if (cursor && static_cast<int>(*cursor) == first + i) {
      if (!screen.at(r.x, y).written) screen.put(r.x, y, U'>', Role::key);
      screen.select({r.x, y, r.width, 1});
    }
  }
  if (more)
    screen.put(r.x + 1, r.bottom() - 1, r.width - 2,
               fmt::format("{} to {} of {} processes{}", first + 1, first + std::min(visible, count), count,
                           all_devices ? fmt::format(" on {} GPUs", all.size()) : ""),
               Role::faint);
}

}  // namespace vramtrack::top

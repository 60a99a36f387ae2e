// Renders every situation on every surface of the program, and prints the renderings as one JSON array for surfaces.py,
// which knows what to expect and drives the surfaces that are not C++.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "agent/server/api_json.hpp"
#include "fleet/text.hpp"
#include "live/notifications.hpp"
#include "period/period.hpp"
#include "report/metrics.hpp"
#include "report/report.hpp"
#include "report/status.hpp"
#include "report/view_json.hpp"
#include "situations.hpp"
#include "top/draw.hpp"

namespace vramtrack::surfaces {
namespace {

using json = nlohmann::ordered_json;

std::string_view name_of(top::Role role) {
  switch (role) {
    case top::Role::good:
      return "good";
    case top::Role::notice:
      return "notice";
    case top::Role::bad:
      return "bad";
    case top::Role::critical:
      return "critical";
    case top::Role::faint:
      return "faint";
    default:
      return "other";
  }
}

void append_utf8(std::string& out, char32_t code) {
  if (code == 0) return;
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6U));
    out += static_cast<char>(0x80 | (code & 0x3fU));
  } else {
    out += static_cast<char>(0xe0 | (code >> 12U));
    out += static_cast<char>(0x80 | ((code >> 6U) & 0x3fU));
    out += static_cast<char>(0x80 | (code & 0x3fU));
  }
}

/// The cells of each row as stretches of one role: [[role, text], ...].
json rows_of(const top::Screen& screen) {
  json rows = json::array();
  for (int y = 0; y < screen.height(); ++y) {
    json row = json::array();
    std::string text;
    for (int x = 0; x < screen.width(); ++x) {
      append_utf8(text, screen.at(x, y).code);
      if (x + 1 < screen.width() && screen.at(x + 1, y).role == screen.at(x, y).role) continue;
      row.push_back({name_of(screen.at(x, y).role), std::exchange(text, {})});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

json screens(const View& view) {
  json out = json::object();
  const auto shared = std::make_shared<const View>(view);
#define VRAMTRACK_PAGE(name, opens, keys, help) \
  {                                             \
    top::Model model;                           \
    model.view = shared;                        \
    model.source = "nvml";                      \
    model.interval_s = 1;                       \
    model.ui.page = top::Page::name;            \
    model.ui.detail = view.series.front().key;  \
    top::Screen screen(180, 60);                \
    draw(screen, model);                        \
    out[#name] = rows_of(screen);               \
  }
#include "top/pages.def"
#undef VRAMTRACK_PAGE
  return out;
}

PeriodReport report_of(const View& view) {
  PeriodReport report;
  report.files = {"vramtrack.db"};
  report.last = view.time;
  report.samples = 7200;
  report.bucket_s = 60;
  for (const SeriesView& s : view.series) {
    if (!report.first || (s.first && *s.first < *report.first)) report.first = s.first;
    PeriodSeries one;
    one.view = s;
    for (const Alert& alert : s.alerts) one.alerts.push_back({alert, false});
    report.series.push_back(std::move(one));
  }
  reckon(report);
  return report;
}

std::string alerts_of_api(const View& view) {
  std::vector<agent::KnownAlert> alerts;
  for (const SeriesView& s : view.series)
    for (const Alert& alert : s.alerts)
      alerts.push_back({s.key, s.device, s.process ? s.process->name : std::string(), alert, std::nullopt});
  return agent::alerts_json(
      view.time, alerts, [](const std::string&) { return std::nullopt; },
      [](const SilenceSubject&) { return std::nullopt; });
}

/// The device as one GPU of a fleet, with a user all the time.
fleet::Scan scan_of(const View& view) {
  const SeriesView& device = view.series.front();
  fleet::GpuVerdict gpu;
  gpu.device = device.device;
  gpu.device.host = "node7";
  gpu.verdict = device.verdict;
  gpu.alerts = device.alerts;
  gpu.used_bytes = device.used_bytes;
  fleet::Workload user;
  user.job = "7";
  const auto ms = [](Timestamp time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  };
  gpu.tenancies = {{user, ms(*device.first), ms(view.time)}};
  fleet::Scan out;
  out.machines.push_back({"node7", {std::move(gpu)}, {}});
  return out;
}

json render(const Situation& situation) {
  const View& view = situation.view;
  json out = {{"situation", situation.name}};
  for (const ReportInfo* report : reports()) out["analyze " + std::string(report->name)] = report->render(view, {true});
  out["watch"] = status_table(view, {true});
  const json drawn = screens(view);
  for (const auto& [name, rows] : drawn.items()) out["top " + name] = rows;
  const PeriodReport report = report_of(view);
  out["report text"] = report_text(report, true);
  out["report markdown"] = report_markdown(report);
  out["report html"] = report_html(report);
  out["report json"] = report_json(report);
  const fleet::Scan scan = scan_of(view);
  out["fleet text"] = fleet::scan_text(scan, fleet::find(scan), {});
  out["fleet json"] = fleet::scan_json(scan, fleet::find(scan), {});
  out["metrics"] = prometheus_text(view, {}, {.host = "node7"});
  out["API view"] = view_json(view);
  out["API view, commands hidden"] = view_json(view, [](const ProcessInfo&) { return false; });
  out["API alerts"] = alerts_of_api(view);
  if (situation.news) {
    const SeriesView& device = view.series.front();
    const IncidentChange incident{.id = device.alerts.back().incident, .also = {}, .news = situation.news};
    const AlertNotice told{view, device, device.alerts.back(), *situation.news, incident};
    const act::Note note = note_of(told, view.time);
    out["notification"] = note.text;
    out["notification json"] = note.json;
  }
  return out;
}

}  // namespace
}  // namespace vramtrack::surfaces

int main() {
  using namespace vramtrack::surfaces;
  json all = json::array();
  for (const Situation& situation : situations()) all.push_back(render(situation));
  std::cout << all.dump() << '\n';
}

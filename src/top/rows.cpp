#include "top/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/ascii.hpp"
#include "core/format.hpp"
#include "core/incident.hpp"
#include "core/local_time.hpp"
#include "core/order.hpp"
#include "host/process.hpp"
#include "report/conclusion_words.hpp"
#include "report/total.hpp"
#include "report/words.hpp"

namespace vramtrack::top {
namespace {

std::string user_of(const SeriesView& s) {
  return s.process ? s.process->user : std::string();
}

bool passes(const SeriesView& s, const std::string& filter) {
  if (filter.empty()) return true;
  std::string all = std::to_string(s.key.pid);
  if (s.process) {
    const ProcessInfo& p = *s.process;
    for (const std::string* part : {&p.user, &p.command, &p.name, &p.framework, &p.container, &p.pod, &p.slurm_job})
      all += '\n' + *part;
  }
  all = lower(all);
  std::istringstream words(lower(filter));
  for (std::string word; words >> word;)
    if (all.find(word) == std::string::npos) return false;
  return true;
}

double growth_of(const SeriesView& s) {
  return s.verdict.finding.state == State::too_short ? 0 : s.verdict.finding.growth_bytes_per_s.mid;
}

bool passes(const SeriesView& s, const Only& only) {
  const auto among = [](const auto& list, const auto& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  return among(only.pids, s.key.pid) && among(only.users, user_of(s));
}

/// Whether `gpu` names the device: "0", "GPU-8f2c1f9e-…", or a prefix longer than the common prefix of all UUIDs.
bool names(const std::string& gpu, const DeviceInfo& device, const std::string& id) {
  constexpr std::size_t kDistinctive = 6;
  if (device.index && std::to_string(*device.index) == gpu) return true;
  return id == gpu || (gpu.size() >= kDistinctive && id.rfind(gpu, 0) == 0);
}

/// Whether `a` comes before `b`; equal rows keep the View's order.
bool before(const Model& model, const SeriesView& a, const SeriesView& b) {
  switch (model.ui.sort) {
    case Sort::severity: {
      const int of_a = concern(a, model.view->time);
      const int of_b = concern(b, model.view->time);
      return of_a != of_b ? of_a > of_b : a.used_bytes > b.used_bytes;
    }
    case Sort::memory:
      return a.used_bytes > b.used_bytes;
    case Sort::growth:
      return growth_of(a) > growth_of(b);
    case Sort::gpu:
      return a.load.gpu_ratio.value_or(-1) > b.load.gpu_ratio.value_or(-1);
    case Sort::cpu:
      return a.load.cpu_ratio.value_or(-1) > b.load.cpu_ratio.value_or(-1);
    case Sort::started: {
      const auto at = [&](const SeriesView& s) {
        const auto time = started(model, s);
        return time ? time->time : Timestamp::min();
      };
      return at(a) > at(b);
    }
    case Sort::user:
      return user_of(a) < user_of(b);
    case Sort::pid:
      return a.key.pid < b.key.pid;
  }
  return false;
}

}  // namespace

std::vector<DeviceRow> devices(const View& view) {
  std::vector<DeviceRow> rows;
  for (const SeriesView& s : view.series) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const DeviceRow& r) { return r.id == s.key.device_id; });
    if (row == rows.end()) row = rows.insert(rows.end(), DeviceRow{s.key.device_id, &s, nullptr});
    if (is_total(s)) row->used = row->any = &s;
  }
  return rows;
}

std::shared_ptr<const View> narrowed(std::shared_ptr<const View> view, const std::vector<std::string>& gpus) {
  if (gpus.empty()) return view;
  auto out = std::make_shared<View>(*view);
  std::erase_if(out->series, [&](const SeriesView& s) {
    return std::none_of(gpus.begin(), gpus.end(), [&](const std::string& gpu) {
      if (names(gpu, s.device, s.key.device_id)) return true;
      if (s.device.parent_id.empty()) return false;
      const SeriesView* parent = find(*view, {Metric::device_used, s.device.parent_id, 0, 0});
      return names(gpu, parent != nullptr ? parent->device : DeviceInfo{}, s.device.parent_id);
    });
  });
  return out;
}

std::size_t selected_device(const Model& model, const std::vector<DeviceRow>& rows) {
  const auto it =
      std::find_if(rows.begin(), rows.end(), [&](const DeviceRow& r) { return r.id == model.ui.device_id; });
  return it == rows.end() ? 0 : static_cast<std::size_t>(it - rows.begin());
}

std::string short_name(const DeviceRow& device) {
  const DeviceInfo& info = device.any->device;
  if (info.index) return short_device_words(*device.any);
  const std::string kind = info.parent_id.empty() ? "GPU " : "MIG ";
  // UUIDs begin with "GPU-" or "MIG-"; the rest distinguishes them.
  const std::string id = printable(device.id);
  const std::size_t from = id.rfind("GPU-", 0) == 0 || id.rfind("MIG-", 0) == 0 ? 4 : 0;
  return kind + id.substr(from, 4);
}

std::vector<const SeriesView*> processes(const Model& model) {
  std::vector<const SeriesView*> rows;
  const auto all = devices(*model.view);
  const std::string only =
      model.ui.this_device_only && !all.empty() ? all[selected_device(model, all)].id : std::string();
  for (const SeriesView& s : model.view->series) {
    if (s.key.pid == 0 || s.key.metric != Metric::process_used || s.ended) continue;
    if (!only.empty() && s.key.device_id != only) continue;
    if (passes(s, model.only) && passes(s, model.ui.filter)) rows.push_back(&s);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const SeriesView* a, const SeriesView* b) { return before(model, *a, *b); });
  if (model.ui.reversed) std::reverse(rows.begin(), rows.end());
  return rows;
}

std::optional<std::size_t> selected_process(const Model& model, const std::vector<const SeriesView*>& rows) {
  if (!model.ui.process) return std::nullopt;
  const auto it =
      std::find_if(rows.begin(), rows.end(), [&](const SeriesView* s) { return s->key == *model.ui.process; });
  if (it == rows.end()) return std::nullopt;
  return static_cast<std::size_t>(it - rows.begin());
}

std::string alert_who(const SeriesView& series) {
  if (series.key.pid == 0) return series_words(series);
  SeriesView unnamed;
  unnamed.key = series.key;
  unnamed.device = series.device;
  unnamed.device.name.clear();
  const std::string who = device_words(unnamed) + ", " + process_words(series);
  return series.device.name.empty() ? who : who + "; " + printable(series.device.name);
}

namespace {

/// Merges the alerts that report the same leak into one row. The row of a device then names its process.
void fold(std::vector<AlertRow>& rows) {
  std::vector<AlertOf> all;
  all.reserve(rows.size());
  for (const AlertRow& row : rows) all.push_back({row.key, row.alert});
  std::vector<AlertRow> kept;
  for (const Incident& incident : incidents_of(all)) {
    AlertRow whole = rows[incident.speaks];
    bool is_named = whole.key.metric != Metric::device_used;
    for (const std::size_t i : incident.members) {
      if (i == incident.speaks) continue;
      const Metric part = rows[i].key.metric;
      if (!is_named && (part == Metric::process_used || is_of_device(part))) {
        whole.who = rows[i].who;
        is_named = true;
      }
      whole.also.push_back({rows[i].key, rows[i].alert.raised});
    }
    kept.push_back(std::move(whole));
  }
  rows = std::move(kept);
}

}  // namespace

std::vector<AlertRow> every_alert(const Model& model) {
  std::vector<AlertRow> rows;
  std::set<AlertId> seen;
  for (const SeriesView& s : model.view->series)
    for (const Alert& alert : s.alerts) {
      if (!seen.insert({s.key, alert.raised}).second) continue;
      rows.push_back({s.key, alert_who(s), alert});
    }
  const auto shown = [&](const std::string& device) {
    return model.only.gpus.empty() || std::any_of(model.view->series.begin(), model.view->series.end(),
                                                  [&](const SeriesView& s) { return s.key.device_id == device; });
  };
  for (const AlertRow& row : model.earlier_alerts)
    if (shown(row.key.device_id) && seen.insert({row.key, row.alert.raised}).second) rows.push_back(row);
  order(rows, [](const AlertRow& a, const AlertRow& b) { return a.alert.raised > b.alert.raised; });
  return rows;
}

std::vector<AlertRow> alerts(const Model& model) {
  std::vector<AlertRow> rows = every_alert(model);
  fold(rows);
  return rows;
}

std::size_t selected_alert(const Model& model, const std::vector<AlertRow>& rows) {
  for (std::size_t i = 0; model.ui.alert && i < rows.size(); ++i)
    if (rows[i].key == model.ui.alert->key && rows[i].alert.raised == model.ui.alert->raised) return i;
  return 0;
}

std::size_t open_alerts(const Model& model) {
  const auto rows = alerts(model);
  return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [&](const AlertRow& row) {
    return row.alert.ended == AlertEnd::standing && !model.acknowledged.contains({row.key, row.alert.raised});
  }));
}

const SeriesView* find(const View& view, const SeriesKey& key) {
  const auto it =
      std::find_if(view.series.begin(), view.series.end(), [&](const SeriesView& s) { return s.key == key; });
  return it == view.series.end() ? nullptr : &*it;
}

std::optional<double> last_bytes(const View& view, const std::string& device_id, Metric metric) {
  const SeriesView* s = find(view, SeriesKey{metric, device_id, 0, 0});
  if (s == nullptr) return std::nullopt;
  return static_cast<double>(s->used_bytes);
}

Role role_of(Tone tone) {
  switch (tone) {
    case Tone::critical:
      return Role::critical;
    case Tone::watch:
    case Tone::warning:
      return Role::bad;
    case Tone::notice:
      return Role::notice;
    case Tone::ok:
      return Role::good;
    case Tone::faint:
      return Role::faint;
    case Tone::plain:
      break;
  }
  return Role::plain;
}

Role figure_role(Tone tone) {
  const Role role = role_of(tone);
  return role == Role::critical ? Role::bad : role;
}

Role condition_role(Condition condition) {
  switch (condition) {
    case Condition::failing:
      return Role::bad;
    case Condition::degraded:
      return Role::notice;
    case Condition::healthy:
    case Condition::unknown:
      break;
  }
  return Role::plain;
}

std::string_view sort_name(Sort sort) {
  constexpr std::array<std::string_view, kSorts> kNames = {"severity", "memory", "growth", "GPU use",
                                                           "CPU use",  "start",  "user",   "pid"};
  return kNames[static_cast<std::size_t>(sort)];
}

std::optional<Started> started(const Model& model, const SeriesView& process) {
  if (model.boot && process.key.pid_start_ticks != 0)
    return Started{*model.boot + from_seconds(std::min(tick_seconds(process.key.pid_start_ticks), 1e9)), false};
  if (process.first) return Started{*process.first, true};
  return std::nullopt;
}

int clock_width(const Scale& scale) {
  constexpr int kClock = 12;  // "01-05 08:22"
  return scale.counts_steps() ? std::max(kClock, columns_of(scale.step + " 9,999,999")) : kClock;
}

int growth_width(const Scale& scale) {
  constexpr int kGrowth = 13;  // "+99.9 MiB/min"
  return scale.counts_steps() ? std::max(kGrowth, columns_of("+999.99 MiB/" + scale.step)) : kGrowth;
}

std::string clock_words(Timestamp time, const View& view) {
  if (view.scale.counts_steps()) return view.moment(time);
  if (view.clock_is_relative) return '+' + view.scale.duration(seconds_between(Timestamp{}, time));
  const std::string clock = clock_time(time);  // 2026-01-05T08:22:35
  const bool same_day = clock.compare(0, 10, clock_time(view.time), 0, 10) == 0;
  return same_day ? clock.substr(11, 8) : clock.substr(5, 5) + ' ' + clock.substr(11, 5);
}

std::string container_words(const ProcessInfo& p) {
  if (!p.slurm_job.empty()) return "job " + printable(p.slurm_job);
  if (!p.pod.empty()) return "pod " + printable(p.pod).substr(0, 8);
  if (!p.container.empty()) return "ctr " + printable(p.container).substr(0, 12);
  return {};
}

std::string no_alert_words(const Model& model) {
  const SeriesView* worst = nullptr;
  for (const SeriesView& s : model.view->series)
    if (!s.paging.empty() && (worst == nullptr || s.verdict.severity > worst->verdict.severity)) worst = &s;
  if (worst == nullptr) return "no alert so far";
  return fmt::format("no alert so far for {}: {}", series_words(*worst), printable(worst->paging));
}

}  // namespace vramtrack::top

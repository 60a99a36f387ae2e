// Reading what view_json.cpp writes.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/json.hpp"
#include "core/verdict_fields.hpp"
#include "report/view_json.hpp"

namespace vramtrack {
namespace {

using json = Json;

/// Thrown and caught within this file only.
struct Misread {
  std::string what;
};

/// A JSON value and where it is, for messages.
class Place {
 public:
  Place(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  /// Calls `read` with the member's Place unless it is missing or null.
  template <class Read>
  void with(const char* name, Read read) const {
    if (!value_.is_object()) fail("an object");
    const json* const it = value_.find(name);
    if (it != nullptr && !it->is_null()) read(Place(*it, path_.empty() ? name : path_ + '.' + name));
  }
  template <class Read>
  void each(const char* name, Read read) const {
    with(name, [&](const Place& list) {
      if (!list.value_.is_array()) list.fail("an array");
      for (std::size_t i = 0; i < list.value_.size(); ++i)
        read(Place(list.value_[i], fmt::format("{}[{}]", list.path_, i)));
    });
  }

  void get(const char* name, bool& into) const {
    with(name, [&](const Place& p) {
      if (!p.value_.is_boolean()) p.fail("true or false");
      into = p.value_.get<bool>();
    });
  }
  void get(const char* name, double& into) const {
    with(name, [&](const Place& p) {
      if (!p.value_.is_number()) p.fail("a number");
      into = p.value_.get<double>();
    });
  }
  void get(const char* name, std::string& into) const {
    with(name, [&](const Place& p) { into = p.text(); });
  }
  template <class T>
  requires(std::is_unsigned_v<T> && !std::is_same_v<T, bool>) void get(const char* name, T& into) const {
    with(name, [&](const Place& p) {
      if (!p.value_.is_number_unsigned() || p.value_.get<std::uint64_t>() > std::numeric_limits<T>::max())
        p.fail(fmt::format("a whole number from 0 to {}", std::numeric_limits<T>::max()));
      into = static_cast<T>(p.value_.get<std::uint64_t>());
    });
  }
  void get(const char* name, std::int64_t& into) const {
    with(name, [&](const Place& p) {
      if (!p.value_.is_number_integer()) p.fail("a whole number");
      into = p.value_.get<std::int64_t>();
    });
  }
  void get(const char* name, int& into) const {
    with(name, [&](const Place& p) {
      if (!p.value_.is_number_integer() || p.value_.get<std::int64_t>() > std::numeric_limits<int>::max() ||
          p.value_.get<std::int64_t>() < std::numeric_limits<int>::min())
        p.fail("a whole number");
      into = p.value_.get<int>();
    });
  }
  void get(const char* name, Timestamp& into) const {
    with(name, [&](const Place& p) {
      const auto time = parse_exact_time(p.text());
      if (!time) p.fail("a time such as 2026-01-02T03:04:05.123456789Z");
      into = *time;
    });
  }
  void get(const char* name, std::vector<std::string>& into) const {
    into.clear();
    each(name, [&](const Place& p) { into.push_back(p.text()); });
  }
  /// Unknown words in the list become `other`: a newer agent may report more.
  void get(const char* name, ThrottleSet& into) const {
    into = {};
    each(name, [&](const Place& p) {
      const auto known = std::find(kThrottleNames.begin(), kThrottleNames.end(), p.text());
      into.add(known == kThrottleNames.end() ? Throttle::other : static_cast<Throttle>(known - kThrottleNames.begin()));
    });
  }
  template <class T>
  void get(const char* name, std::optional<T>& into) const {
    into.reset();
    with(name, [&](const Place&) {
      into.emplace();
      get(name, *into);
    });
  }
  /// One of the words that an enumeration allows.
  template <class E>
  requires std::is_enum_v<E>
  void get(const char* name, E& into) const {
    with(name, [&](const Place& p) {
      const auto words = words_of<E>();
      const auto known = std::find(words.begin(), words.end(), p.text());
      if (known == words.end()) p.fail(fmt::format("one of {}", fmt::join(words, ", ")));
      into = static_cast<E>(known - words.begin());
    });
  }
  template <HasFields T>
  void get(const char* name, T& into) const {
    with(name, [&](const Place& p) { p.get(into); });
  }
  template <HasFields T>
  void get(const char* name, std::vector<T>& into) const {
    into.clear();
    each(name, [&](const Place& p) { p.get(into.emplace_back()); });
  }
  /// Reads every field of a declared struct; derived values are not read.
  template <HasFields T>
  void get(T& into) const {
    for_each_field<T>([&](const auto& field) {
      if constexpr (std::remove_cvref_t<decltype(field)>::kStored) get(field.name.data(), field.of(into));
    });
  }

  [[nodiscard]] const std::string& text() const {
    if (!value_.is_string()) fail("a string");
    return value_.text();
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw Misread{fmt::format("{}: expected {}", path_.empty() ? "the view" : path_, expected)};
  }

 private:
  const json& value_;
  std::string path_;
};

Alert read_alert(const Place& p, SeriesId series) {
  Alert a;
  a.series = series;
  p.get(a);
  return a;
}

DeviceInfo read_device(const Place& p) {
  DeviceInfo d;
  p.get("id", d.id);
  p.get("index", d.index);
  p.get("name", d.name);
  p.get("pci_bus_id", d.pci_bus_id);
  p.get("parent_id", d.parent_id);
  p.get("capacity_bytes", d.capacity_bytes);
  p.get("shares_host_memory", d.shares_host_memory);
  return d;
}

ProcessInfo read_process(const Place& p) {
  ProcessInfo out;
  p.get("pid", out.pid);
  p.get("start_ticks", out.start_ticks);
  p.get("user", out.user);
  p.get("command", out.command);
  p.get("name", out.name);
  p.get("kind", out.kind);
  p.get("cgroup", out.cgroup);
  p.get("container", out.container);
  p.get("pod", out.pod);
  p.get("slurm_job", out.slurm_job);
  p.get("image", out.image);
  p.get("slurm_job_name", out.job_name);
  p.get("framework", out.framework);
  p.get("ns_pid", out.ns_pid);
  return out;
}

EccErrors read_ecc(const Place& p) {
  EccErrors errors;
  p.get("corrected", errors.corrected);
  p.get("uncorrected", errors.uncorrected);
  return errors;
}

DeviceHealth read_health(const Place& p) {
  DeviceHealth h;
  p.get("time", h.time);
  p.get("temperature_celsius", h.temperature_celsius);
  p.get("ecc_enabled", h.ecc_enabled);
  p.with("ecc_since_load", [&](const Place& e) { h.ecc_since_load = read_ecc(e); });
  p.with("ecc_lifetime", [&](const Place& e) { h.ecc_lifetime = read_ecc(e); });
  p.get("remapped_rows", h.remapped_rows);
  p.get("repair_pending", h.repair_pending);
  p.get("repair_failed", h.repair_failed);
  p.get("throttle", h.throttle);
  p.get("hears_xids", h.hears_xids);
  return h;
}

DeviceGauges read_gauges(const Place& p) {
  DeviceGauges g;
  p.get("memory_utilisation_ratio", g.memory_utilisation_ratio);
  p.get("temperature_celsius", g.temperature_celsius);
  p.get("power_watts", g.power_watts);
  p.get("power_limit_watts", g.power_limit_watts);
  p.get("sm_clock_hertz", g.sm_clock_hertz);
  p.get("fan_ratio", g.fan_ratio);
  return g;
}

ProcessLoad read_load(const Place& p) {
  ProcessLoad load;
  p.get("gpu_ratio", load.gpu_ratio);
  p.get("cpu_ratio", load.cpu_ratio);
  p.get("host_bytes", load.host_bytes);
  return load;
}

SiteLifetimes read_site(const Place& p) {
  SiteLifetimes site;
  p.get("site", site.site);
  p.get("live_bytes", site.live_bytes);
  p.get("live_blocks", site.live_blocks);
  p.get("error_bytes", site.error_bytes);
  p.get("idle_s", site.idle_s);
  p.each("ages", [&](const Place& a) {
    AgedBytes& aged = site.ages.emplace_back();
    a.get("youngest_s", aged.youngest_s);
    a.get("oldest_s", aged.oldest_s);
    a.get("allocated_bytes", aged.allocated_bytes);
    a.get("live_bytes", aged.live_bytes);
  });
  return site;
}

Headroom read_headroom(const Place& p) {
  Headroom h;
  p.get("peak_bytes", h.peak_bytes);
  p.get("more_bytes", h.more_bytes);
  p.get("earlier_runs", h.earlier_runs);
  p.get("left_bytes", h.left_bytes);
  p.get("pid", h.pid);
  p.get("beside_pid", h.beside_pid);
  return h;
}

MemoryWall read_wall(const Place& p) {
  MemoryWall w;
  p.get("bytes", w.bytes);
  p.get("used_bytes", w.used_bytes);
  p.get("processes", w.processes);
  p.get("growth_bytes_per_s", w.growth_bytes_per_s);
  p.get("name", w.name);
  return w;
}

HostHolding read_host(const Place& p) {
  HostHolding h;
  p.get("anonymous_bytes", h.anonymous_bytes);
  p.get("resident_bytes", h.resident_bytes);
  p.get("pinned_bytes", h.pinned_bytes);
  p.get("available_bytes", h.available_bytes);
  return h;
}

StillHolds read_still_holds(const Place& p) {
  StillHolds h;
  p.get("ran_out", h.ran_out);
  p.get("unused_bytes", h.unused_bytes);
  return h;
}

MarkGrowth read_mark_growth(const Place& p) {
  MarkGrowth g;
  p.get("name", g.name);
  p.get("last", g.last);
  p.get("bytes_per_mark", g.bytes_per_mark);
  return g;
}

SeriesView read_series(const Place& p) {
  SeriesView s;
  std::uint32_t id = 0;
  p.get("id", id);
  s.id = SeriesId{id};
  p.with("key", [&](const Place& k) {
    const auto key = parse_series_key(k.text());
    if (!key) k.fail("METRIC/DEVICE or METRIC/DEVICE/PID/START_TICKS");
    s.key = *key;
  });
  if (s.key.device_id.empty()) p.fail("an object with a key");
  p.with("device", [&](const Place& d) { s.device = read_device(d); });
  p.with("process", [&](const Place& q) { s.process = read_process(q); });
  // Both are the host of the series, from its key.
  s.device.host = s.key.host;
  if (s.process) s.process->host = s.key.host;
  p.get("samples", s.samples);
  p.get("first", s.first);
  p.get("last", s.last);
  p.get("interval_s", s.interval_s);
  p.get("used_bytes", s.used_bytes);
  p.get("peak_bytes", s.peak_bytes);
  p.get("level_bytes", s.level_bytes);
  p.get("ended", s.ended);
  p.get("paused", s.paused);
  p.get("ignored", s.ignored);
  p.get("utilisation_ratio", s.utilisation_ratio);
  p.with("gauges", [&](const Place& g) { s.gauges = read_gauges(g); });
  p.with("load", [&](const Place& l) { s.load = read_load(l); });
  p.get("stall", s.stall);
  p.with("headroom", [&](const Place& h) { s.headroom = read_headroom(h); });
  p.with("wall", [&](const Place& w) { s.wall = read_wall(w); });
  p.with("host_memory", [&](const Place& h) { s.host = read_host(h); });
  p.with("still_holds", [&](const Place& h) { s.still_holds = read_still_holds(h); });
  p.with("mark_growth", [&](const Place& g) { s.mark_growth = read_mark_growth(g); });
  p.get("unreleased_bytes", s.unreleased_bytes);
  p.each("sites", [&](const Place& one) { s.sites.push_back(read_site(one)); });
  p.with("health", [&](const Place& h) { s.health = read_health(h); });
  p.with("last_xid", [&](const Place& x) {
    s.last_xid.emplace();
    x.get("time", s.last_xid->time);
    x.get("code", s.last_xid->code);
    x.get("text", s.last_xid->text);
  });
  p.get("verdict", s.verdict);
  s.verdict.series = s.id;
  p.get("runs", s.runs);
  p.get("paging", s.paging);
  p.each("alerts", [&](const Place& a) { s.alerts.push_back(read_alert(a, s.id)); });
  p.each("suspicions", [&](const Place& a) { s.suspicions.push_back(read_alert(a, s.id)); });
  p.get("explain", s.explain);
  return s;
}

View read_view(const Place& p) {
  View v;
  p.get("time", v.time);
  p.get("clock_is_relative", v.clock_is_relative);
  p.get("files", v.files);
  p.each("series", [&](const Place& s) { v.series.push_back(read_series(s)); });
  p.each("notices", [&](const Place& n) {
    Notice notice;
    n.get("time", notice.time);
    n.get("text", notice.text);
    v.notices.push_back(std::move(notice));
  });
  p.get("skipped_lines", v.skipped_lines);
  p.get("first_skipped", v.first_skipped);
  p.get("warnings", v.warnings);
  return v;
}

}  // namespace

Result<Alert> parse_alert_object_json(std::string_view text) {
  const auto value = json::parse(text);
  if (!value) return fail(value.error().during("reading an alert"));
  try {
    return read_alert(Place(*value, ""), SeriesId{});
  } catch (const Misread& e) {
    return fail("reading an alert: " + e.what);
  }
}

Result<View> parse_view_json(std::string_view text) {
  const auto value = json::parse(text);
  if (!value) return fail(value.error().during("reading a view"));
  try {
    return read_view(Place(*value, ""));
  } catch (const Misread& e) {
    return fail("reading a view: " + e.what);
  }
}

}  // namespace vramtrack

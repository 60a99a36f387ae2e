// A new field of View (or of what it holds) needs a line in its *_json and one in its read_*; ViewJson.RoundTrip fails
// without.
#include "report/view_json.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace vramtrack {
namespace {

using json = nlohmann::ordered_json;

// ---- writing

json time_json(const std::optional<Timestamp>& time) {
  return time ? json(exact_time(*time)) : json(nullptr);
}

json number(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}

json interval_json(const Interval& i) {
  return {{"low", number(i.low)}, {"mid", number(i.mid)}, {"high", number(i.high)}};
}

json finding_json(const Finding& f) {
  return {{"detector", f.detector},
          {"leak", f.leak},
          {"state", to_string(f.state)},
          {"pattern", to_string(f.pattern)},
          {"spike", to_string(f.spike)},
          {"confidence", number(f.confidence)},
          {"growth_bytes_per_s", interval_json(f.growth_bytes_per_s)},
          {"r_squared", number(f.r_squared)},
          {"oom_in_s", f.oom_in_s ? interval_json(*f.oom_in_s) : json(nullptr)},
          {"onset", time_json(f.onset)},
          {"because", f.because}};
}

json alert_object(const SeriesKey& key, const Alert& a) {
  return {{"id", alert_id(key, a.raised)},     {"raised", time_json(a.raised)}, {"cleared", time_json(a.cleared)},
          {"ended", to_string(a.ended)},       {"end_reason", a.end_reason},    {"severity", to_string(a.severity)},
          {"finding", finding_json(a.finding)}};
}

/// The command of a suspect, where the client may see that process's.
std::string suspect_command(const View& view, const Suspect& suspect, const MaySeeCommand& may_see) {
  if (!may_see || suspect.pid == 0) return suspect.command;
  for (const SeriesView& s : view.series)
    if (s.process && s.process->pid == suspect.pid && s.process->start_ticks == suspect.pid_start_ticks)
      return may_see(*s.process) ? suspect.command : s.process->name;
  return {};  // forgotten by now: nobody can say whose it was
}

json verdict_json(const View& view, const Verdict& v, const MaySeeCommand& may_see) {
  json out = {{"time", time_json(v.time)},
              {"severity", to_string(v.severity)},
              {"finding", finding_json(v.finding)},
              {"dissent", json::array()},
              {"suspect", nullptr},
              {"framework", v.framework},
              {"causes", v.causes}};
  for (const Finding& f : v.dissent) out["dissent"].push_back(finding_json(f));
  if (v.suspect)
    out["suspect"] = {{"pid", v.suspect->pid},
                      {"pid_start_ticks", v.suspect->pid_start_ticks},
                      {"command", suspect_command(view, *v.suspect, may_see)},
                      {"share", number(v.suspect->share)}};
  return out;
}

json device_json(const DeviceInfo& d) {
  return {{"id", d.id},
          {"index", d.index ? json(*d.index) : json(nullptr)},
          {"name", d.name},
          {"pci_bus_id", d.pci_bus_id},
          {"parent_id", d.parent_id},
          {"capacity_bytes", d.capacity_bytes ? json(*d.capacity_bytes) : json(nullptr)}};
}

json process_json(const ProcessInfo& p, const MaySeeCommand& may_see) {
  const bool hidden = may_see && !may_see(p);
  return {{"pid", p.pid},
          {"start_ticks", p.start_ticks},
          {"user", p.user},
          {"command", hidden ? p.name : p.command},
          {"command_hidden", hidden},
          {"name", p.name},
          {"kind", p.kind},
          {"cgroup", p.cgroup},
          {"container", p.container},
          {"pod", p.pod},
          {"slurm_job", p.slurm_job},
          {"framework", p.framework},
          {"ns_pid", p.ns_pid}};
}

json series_json(const View& view, const SeriesView& s, const MaySeeCommand& may_see) {
  json out = {{"key", series_key_text(s.key)},
              {"id", index_of(s.id)},
              {"metric", to_string(s.key.metric)},
              {"pid", s.key.pid},
              {"pid_start_ticks", s.key.pid_start_ticks},
              {"device", device_json(s.device)},
              {"process", s.process ? process_json(*s.process, may_see) : json(nullptr)},
              {"samples", s.samples},
              {"first", time_json(s.first)},
              {"last", time_json(s.last)},
              {"interval_s", number(s.interval_s)},
              {"used_bytes", s.used_bytes},
              {"peak_bytes", s.peak_bytes},
              {"ended", s.ended},
              {"paused", s.paused},
              {"ignored", s.ignored},
              {"utilisation_ratio", s.utilisation_ratio ? number(*s.utilisation_ratio) : json(nullptr)},
              {"verdict", verdict_json(view, s.verdict, may_see)},
              {"alerts", json::array()},
              {"explain", s.explain}};
  for (const Alert& a : s.alerts) out["alerts"].push_back(alert_object(s.key, a));
  return out;
}

/// Bytes that are no UTF-8 (a command line may hold any) become U+FFFD; nothing throws.
std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// ---- reading

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
    const auto it = value_.find(name);
    if (it != value_.end() && !it->is_null()) read(Place(*it, path_.empty() ? name : path_ + '.' + name));
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
      if (!time) p.fail("a time as 2026-01-02T03:04:05.123456789Z");
      into = *time;
    });
  }
  void get(const char* name, std::vector<std::string>& into) const {
    into.clear();
    each(name, [&](const Place& p) { into.push_back(p.text()); });
  }
  template <class T>
  void get(const char* name, std::optional<T>& into) const {
    into.reset();
    with(name, [&](const Place&) {
      into.emplace();
      get(name, *into);
    });
  }
  /// One of the `count` words that to_string gives for an enumeration.
  template <class E>
  void word(const char* name, E& into, std::uint8_t count) const {
    with(name, [&](const Place& p) {
      const std::string& text = p.text();
      std::string words;
      for (std::uint8_t i = 0; i < count; ++i) {
        const std::string_view known = to_string(static_cast<E>(i));
        if (known == text) {
          into = static_cast<E>(i);
          return;
        }
        words += (words.empty() ? "" : ", ") + std::string(known);
      }
      p.fail("one of " + words);
    });
  }

  [[nodiscard]] const std::string& text() const {
    if (!value_.is_string()) fail("a text");
    return value_.get_ref<const std::string&>();
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw Misread{fmt::format("{}: expected {}", path_.empty() ? "the view" : path_, expected)};
  }

 private:
  const json& value_;
  std::string path_;
};

Interval read_interval(const Place& p) {
  Interval i;
  p.get("low", i.low);
  p.get("mid", i.mid);
  p.get("high", i.high);
  return i;
}

Finding read_finding(const Place& p) {
  Finding f;
  p.get("detector", f.detector);
  p.get("leak", f.leak);
  p.word("state", f.state, 9);
  p.word("pattern", f.pattern, 6);
  p.word("spike", f.spike, 3);
  p.get("confidence", f.confidence);
  p.with("growth_bytes_per_s", [&](const Place& i) { f.growth_bytes_per_s = read_interval(i); });
  p.get("r_squared", f.r_squared);
  p.with("oom_in_s", [&](const Place& i) { f.oom_in_s = read_interval(i); });
  p.get("onset", f.onset);
  p.get("because", f.because);
  return f;
}

Alert read_alert(const Place& p, SeriesId series) {
  Alert a;
  a.series = series;
  p.get("raised", a.raised);
  p.get("cleared", a.cleared);
  p.word("ended", a.ended, 4);
  p.get("end_reason", a.end_reason);
  p.word("severity", a.severity, 4);
  p.with("finding", [&](const Place& f) { a.finding = read_finding(f); });
  return a;
}

Verdict read_verdict(const Place& p, SeriesId series) {
  Verdict v;
  v.series = series;
  p.get("time", v.time);
  p.word("severity", v.severity, 4);
  p.with("finding", [&](const Place& f) { v.finding = read_finding(f); });
  p.each("dissent", [&](const Place& f) { v.dissent.push_back(read_finding(f)); });
  p.with("suspect", [&](const Place& s) {
    v.suspect.emplace();
    s.get("pid", v.suspect->pid);
    s.get("pid_start_ticks", v.suspect->pid_start_ticks);
    s.get("command", v.suspect->command);
    s.get("share", v.suspect->share);
  });
  p.get("framework", v.framework);
  p.get("causes", v.causes);
  return v;
}

DeviceInfo read_device(const Place& p) {
  DeviceInfo d;
  p.get("id", d.id);
  p.get("index", d.index);
  p.get("name", d.name);
  p.get("pci_bus_id", d.pci_bus_id);
  p.get("parent_id", d.parent_id);
  p.get("capacity_bytes", d.capacity_bytes);
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
  p.get("framework", out.framework);
  p.get("ns_pid", out.ns_pid);
  return out;
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
  p.with("device", [&](const Place& d) { s.device = read_device(d); });
  p.with("process", [&](const Place& q) { s.process = read_process(q); });
  p.get("samples", s.samples);
  p.get("first", s.first);
  p.get("last", s.last);
  p.get("interval_s", s.interval_s);
  p.get("used_bytes", s.used_bytes);
  p.get("peak_bytes", s.peak_bytes);
  p.get("ended", s.ended);
  p.get("paused", s.paused);
  p.get("ignored", s.ignored);
  p.get("utilisation_ratio", s.utilisation_ratio);
  p.with("verdict", [&](const Place& v) { s.verdict = read_verdict(v, s.id); });
  p.each("alerts", [&](const Place& a) { s.alerts.push_back(read_alert(a, s.id)); });
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

bool is_of_process(Metric metric) {
  return metric != Metric::device_used && metric != Metric::device_reserved;
}

template <class T>
bool parse_whole(std::string_view text, T& into) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), into);
  return ec == std::errc{} && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::string view_json(const View& view, const MaySeeCommand& may_see) {
  json out = {{"schema", "vramtrack.view.v1"},
              {"time", time_json(view.time)},
              {"clock_is_relative", view.clock_is_relative},
              {"files", view.files},
              {"series", json::array()},
              {"notices", json::array()},
              {"skipped_lines", view.skipped_lines},
              {"first_skipped", view.first_skipped},
              {"warnings", view.warnings}};
  for (const SeriesView& s : view.series) out["series"].push_back(series_json(view, s, may_see));
  for (const Notice& n : view.notices) out["notices"].push_back({{"time", time_json(n.time)}, {"text", n.text}});
  return dump(out);
}

Result<View> parse_view_json(std::string_view text) {
  try {
    const json value = json::parse(text.begin(), text.end());
    return read_view(Place(value, ""));
  } catch (const Misread& e) {
    return fail("reading a view: " + e.what);
  } catch (const json::exception& e) {
    return fail(std::string("reading a view: ") + e.what());
  }
}

std::string alert_object_json(const SeriesKey& key, const Alert& alert) {
  return dump(alert_object(key, alert));
}

std::string series_key_text(const SeriesKey& key) {
  std::string out = fmt::format("{}/{}", to_string(key.metric), key.device_id);
  if (is_of_process(key.metric)) out += fmt::format("/{}/{}", key.pid, key.pid_start_ticks);
  return out;
}

std::optional<SeriesKey> parse_series_key(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto metric = parse_metric(text.substr(0, slash));
  if (!metric) return std::nullopt;
  SeriesKey key;
  key.metric = *metric;
  text.remove_prefix(slash + 1);
  if (is_of_process(*metric)) {
    const std::size_t ticks = text.rfind('/');
    if (ticks == std::string_view::npos || ticks == 0) return std::nullopt;
    const std::size_t pid = text.rfind('/', ticks - 1);
    if (pid == std::string_view::npos || !parse_whole(text.substr(ticks + 1), key.pid_start_ticks) ||
        !parse_whole(text.substr(pid + 1, ticks - pid - 1), key.pid))
      return std::nullopt;
    text = text.substr(0, pid);
  }
  if (text.empty()) return std::nullopt;
  key.device_id = std::string(text);
  return key;
}

std::string alert_id(const SeriesKey& key, Timestamp raised) {
  // FNV-1a: an id, not a secret.
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : series_key_text(key) + '@' + std::to_string(raised.time_since_epoch().count()))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

std::string exact_time(Timestamp time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day ymd{day};
  const auto s = (second - day).count();
  std::string out =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(ymd.year()),
                  static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()), s / 3600, s / 60 % 60, s % 60);
  if (const auto ns = (time - second).count(); ns != 0) {
    out += fmt::format(".{:09}", ns);
    out.erase(out.find_last_not_of('0') + 1);
  }
  return out + 'Z';
}

std::optional<Timestamp> parse_exact_time(std::string_view text) {
  // 2026-01-02T03:04:05[.123456789]Z
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kForm.size() + 1 || text.size() > kForm.size() + 11 || text.back() != 'Z') return std::nullopt;
  std::array<int, 6> parts{};
  std::size_t part = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != 'd') {
      if (text[i] != kForm[i]) return std::nullopt;
      ++part;
    } else {
      if (text[i] < '0' || text[i] > '9') return std::nullopt;
      parts[part] = parts[part] * 10 + (text[i] - '0');
    }
  }
  const std::chrono::year_month_day ymd{std::chrono::year{parts[0]},
                                        std::chrono::month{static_cast<unsigned>(parts[1])},
                                        std::chrono::day{static_cast<unsigned>(parts[2])}};
  if (!ymd.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 59) return std::nullopt;
  if (parts[0] < 1678 || parts[0] > 2261) return std::nullopt;  // what 64 bits of nanoseconds hold
  std::string_view rest = text.substr(kForm.size(), text.size() - kForm.size() - 1);
  std::int64_t ns = 0;
  if (!rest.empty()) {
    if (rest.front() != '.' || rest.size() < 2) return std::nullopt;
    rest.remove_prefix(1);
    for (std::size_t i = 0; i < 9; ++i) {
      if (i < rest.size() && (rest[i] < '0' || rest[i] > '9')) return std::nullopt;
      ns = ns * 10 + (i < rest.size() ? rest[i] - '0' : 0);
    }
  }
  return Timestamp{std::chrono::sys_days{ymd}} + std::chrono::hours{parts[3]} + std::chrono::minutes{parts[4]} +
         std::chrono::seconds{parts[5]} + std::chrono::nanoseconds{ns};
}

}  // namespace vramtrack

#include "report/view_json.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/verdict_fields.hpp"
#include "sample_view.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Random values for every field of every part of a View. The structured bindings name them all: a new field does not
/// compile here until it is drawn, too, and then the round trip fails until view_json has it.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  bool flag() { return next() % 2 == 0; }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  double figure() {
    constexpr double kSpecial[] = {0, 1, -1, 0.1, 1e-300, 1e300, 5e-324, std::numeric_limits<double>::max()};
    if (below(4) == 0) return kSpecial[below(8)];
    return (static_cast<double>(next() >> 11) / 9007199254740992.0 - 0.5) * static_cast<double>(below(1ULL << 40));
  }
  std::string text() {
    // As in any JSON, printable text is returned unchanged.
    constexpr std::string_view kWords[] = {"", "python", "a \"b\" \\ \n\t", "Grüße", "/x", "é…😀"};
    return std::string(kWords[below(6)]) + std::string(kWords[below(6)]);
  }
  Timestamp time() {
    return Timestamp{Duration{static_cast<std::int64_t>(below(9'000'000'000'000'000'000U)) - 500'000'000'000}};
  }
  std::vector<std::string> texts() {
    std::vector<std::string> out(below(3));
    for (std::string& t : out) t = text();
    return out;
  }
  template <class T, class Make>
  std::optional<T> maybe(Make make) {
    return flag() ? std::optional<T>(make()) : std::nullopt;
  }
  Interval interval() { return {figure(), figure(), figure()}; }

  Finding finding() {
    Finding f;
    auto& [detector, leak, stage, state, pattern, spike, confidence, growth, r_squared, oom, onset, oom_if_growing,
           because] = f;
    detector = text();
    leak = flag();
    stage = static_cast<Stage>(below(4));
    oom_if_growing = maybe<double>([this] { return figure(); });
    state = static_cast<State>(below(9));
    pattern = static_cast<Pattern>(below(6));
    spike = static_cast<SpikeOutcome>(below(3));
    confidence = figure();
    growth = interval();
    r_squared = figure();
    oom = maybe<Interval>([this] { return interval(); });
    onset = maybe<Timestamp>([this] { return time(); });
    because = text();
    return f;
  }
  Verdict verdict(SeriesId id) {
    Verdict v;
    auto& [at, series, severity, winner, dissent, suspect, framework, causes, advice, over] = v;
    at = time();
    series = id;
    severity = static_cast<Severity>(below(4));
    winner = finding();
    for (std::uint64_t i = below(3); i > 0; --i) dissent.push_back(finding());
    suspect = maybe<Suspect>([this] { return Suspect{static_cast<std::uint32_t>(next()), next(), text(), figure()}; });
    framework = text();
    causes = texts();
    advice = texts();
    over = maybe<End>([this] { return end(); });
    return v;
  }
  EndKind how() { return static_cast<EndKind>(below(3)); }
  End end() {
    End e;
    auto& [kind, at, pid, start, command, used, grew, since, sure, fits, loading] = e;
    kind = how();
    at = time();
    pid = static_cast<std::uint32_t>(next());
    start = next();
    command = text();
    used = next();
    grew = maybe<double>([this] { return figure(); });
    since = maybe<Timestamp>([this] { return time(); });
    sure = maybe<double>([this] { return figure(); });
    fits = maybe<double>([this] { return figure(); });
    loading = flag();
    return e;
  }
  Run run() {
    Run r;
    auto& [begin, until, peak, kind, pid, grew, since, alerted] = r;
    begin = time();
    until = maybe<Timestamp>([this] { return time(); });
    peak = next();
    kind = how();
    pid = static_cast<std::uint32_t>(next());
    grew = maybe<double>([this] { return figure(); });
    since = maybe<Timestamp>([this] { return time(); });
    alerted = maybe<Timestamp>([this] { return time(); });
    return r;
  }
  Alert alert(SeriesId id) {
    Alert a;
    auto& [series, raised, cleared, ended, severity, found, suspected_for_s, end_reason, kind, end_kind, paged_because,
           incident] = a;
    paged_because = text();
    incident = text();
    kind = static_cast<AlertKind>(below(2));
    series = id;
    raised = time();
    cleared = maybe<Timestamp>([this] { return time(); });
    ended = static_cast<AlertEnd>(below(5));
    severity = static_cast<Severity>(below(4));
    found = finding();
    suspected_for_s = maybe<double>([this] { return figure(); });
    end_reason = text();
    end_kind = maybe<EndKind>([this] { return how(); });
    return a;
  }
  ProcessInfo process() {
    ProcessInfo p;
    auto& [pid, start, user, command, name, kind, cgroup, container, pod, job, image, job_name, framework, ns_pid,
           host] = p;
    pid = static_cast<std::uint32_t>(next());
    start = next();
    for (std::string* s :
         {&user, &command, &name, &kind, &cgroup, &container, &pod, &job, &image, &job_name, &framework})
      *s = text();
    ns_pid = static_cast<std::uint32_t>(next());
    host = {};  // it is written only with the series
    return p;
  }
  DeviceHealth health() {
    DeviceHealth h;
    auto& [read, celsius, ecc, since_load, lifetime, remapped, pending, failed, throttle, hears] = h;
    const auto count = [this] { return next(); };
    const auto yes = [this] { return flag(); };
    read = time();
    celsius = maybe<double>([this] { return figure(); });
    ecc = maybe<bool>(yes);
    since_load = {maybe<std::uint64_t>(count), maybe<std::uint64_t>(count)};
    lifetime = {maybe<std::uint64_t>(count), maybe<std::uint64_t>(count)};
    remapped = maybe<std::uint64_t>(count);
    pending = maybe<bool>(yes);
    failed = maybe<bool>(yes);
    throttle = maybe<ThrottleSet>([this] { return ThrottleSet{static_cast<std::uint8_t>(below(256))}; });
    hears = maybe<bool>(yes);
    return h;
  }
  SeriesView series() {
    SeriesView s;
    auto& [id, key, device, of, samples, first, last, interval_s, used, peak, level, ended, paused, ignored,
           utilisation, gauges, load, stall, headroom, wall, host, still, marks, unreleased, sites, state, xid, judged,
           paging, alerts, suspicions, runs, explain] = s;
    paging = text();
    id = SeriesId{static_cast<std::uint32_t>(next())};
    key.metric = static_cast<Metric>(below(6));
    key.device_id = "GPU-" + std::to_string(below(100)) + (flag() ? "/x" : "");
    if (key.metric != Metric::device_used && key.metric != Metric::device_reserved) {
      key.pid = static_cast<std::uint32_t>(next());
      key.pid_start_ticks = next();
    }
    device = {text(), maybe<int>([this] { return static_cast<int>(below(100)) - 50; }),
              text(), text(),
              text(), maybe<std::uint64_t>([this] { return next(); }),
              flag()};
    of = maybe<ProcessInfo>([this] { return process(); });
    key.host = flag() ? "node" + std::to_string(below(100)) : "";
    device.host = key.host;
    if (of) of->host = key.host;
    samples = next();
    first = maybe<Timestamp>([this] { return time(); });
    last = maybe<Timestamp>([this] { return time(); });
    interval_s = figure();
    used = next();
    peak = next();
    level = maybe<double>([this] { return figure(); });
    ended = flag();
    paused = flag();
    ignored = flag();
    utilisation = maybe<double>([this] { return figure(); });
    const auto some = [this] { return maybe<double>([this] { return figure(); }); };
    gauges = {some(), some(), some(), some(), some(), some()};
    load = {some(), some(), maybe<std::uint64_t>([this] { return next(); })};
    sites.resize(below(3));
    for (SiteLifetimes& site : sites) {
      site = {text(), figure(), figure(), figure(), figure(), {}};
      site.ages.resize(below(3));
      for (AgedBytes& aged : site.ages) aged = {figure(), figure(), figure(), figure()};
    }
    stall = maybe<Stall>([this] {
      return Stall{static_cast<StallJudgement>(below(3)),
                   static_cast<StallCause>(below(9)),
                   time(),
                   figure(),
                   figure(),
                   next(),
                   text(),
                   texts()};
    });
    headroom = maybe<Headroom>([this] {
      return Headroom{next(),
                      next(),
                      static_cast<std::uint32_t>(next()),
                      static_cast<std::int64_t>(next() - next()),
                      static_cast<std::uint32_t>(next()),
                      static_cast<std::uint32_t>(below(2))};
    });
    wall = maybe<MemoryWall>([this] {
      return MemoryWall{next(), next(), static_cast<std::uint32_t>(below(100)), figure(), text()};
    });
    const auto bytes = [this] { return maybe<std::uint64_t>([this] { return next(); }); };
    host = maybe<HostHolding>([&] { return HostHolding{next(), bytes(), bytes(), bytes()}; });
    still = maybe<StillHolds>([&] { return StillHolds{time(), bytes()}; });
    marks = maybe<MarkGrowth>([this] { return MarkGrowth{text(), next(), figure()}; });
    unreleased = next();
    state = maybe<DeviceHealth>([this] { return health(); });
    xid = maybe<LastXid>([this] { return LastXid{time(), next(), text()}; });
    judged = verdict(id);
    for (std::uint64_t i = below(3); i > 0; --i) alerts.push_back(alert(id));
    for (std::uint64_t i = below(3); i > 0; --i) suspicions.push_back(alert(id));
    for (std::uint64_t i = below(3); i > 0; --i) runs.push_back(run());
    explain = texts();
    return s;
  }
  View view() {
    View v;
    // The scale is not written, because the JSON comes from a live watch.
    auto& [at, relative, scale, files, all, notices, skipped, first_skipped, warnings] = v;
    at = time();
    relative = flag();
    files = texts();
    for (std::uint64_t i = below(4); i > 0; --i) all.push_back(series());
    for (std::uint64_t i = below(3); i > 0; --i) notices.push_back({time(), text()});
    skipped = next();
    first_skipped = texts();
    warnings = texts();
    return v;
  }

 private:
  std::uint64_t state_;
};

template <class T>
requires(!HasFields<T> || std::same_as<T, Interval>) bool same(const T& a, const T& b) {
  return a == b;
}
template <HasFields T>
requires(!std::same_as<T, Interval>) bool same(const T& a, const T& b);
template <HasFields T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const T& x, const T& y) { return same(x, y); });
}
template <HasFields T>
requires(!std::same_as<T, Interval>) bool same(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}
/// Every declared field, including derived ones.
template <HasFields T>
requires(!std::same_as<T, Interval>) bool same(const T& a, const T& b) {
  bool all = true;
  for_each_field<T>([&](const auto& field) {
    if (same(field.of(a), field.of(b))) return;
    all = false;
    ADD_FAILURE() << field.name << " differs";
  });
  return all;
}

TEST(ViewJson, HidesTheLinesOfAProgramWhoseCommandIsHidden) {
  View view = sample_view();
  for (SeriesView& s : view.series) s.sites = {{"secret.py:7 step", 1, 1, 0, 0, {}}};
  EXPECT_THAT(view_json(view), HasSubstr("secret.py:7 step"));
  std::erase_if(view.series, [](const SeriesView& s) { return !s.process; });
  ASSERT_FALSE(view.series.empty());
  EXPECT_THAT(view_json(view, [](const ProcessInfo&) { return false; }), Not(HasSubstr("secret.py")));
}

// Compares text with text: view_json must write the same for a view and for that view read back; fields that it could
// have omitted are compared one by one below.
RC_GTEST_PROP(ViewJson, RoundTrip, (std::uint64_t seed)) {
  const View view = Draw(seed).view();
  const std::string text = view_json(view);
  const auto back = parse_view_json(text);
  RC_ASSERT(back.has_value());
  RC_ASSERT(view_json(*back) == text);
  RC_ASSERT(back->time == view.time);
  RC_ASSERT(back->clock_is_relative == view.clock_is_relative);
  RC_ASSERT(back->files == view.files);
  RC_ASSERT(back->skipped_lines == view.skipped_lines);
  RC_ASSERT(back->first_skipped == view.first_skipped);
  RC_ASSERT(back->warnings == view.warnings);
  RC_ASSERT(back->notices.size() == view.notices.size());
  RC_ASSERT(back->series.size() == view.series.size());
  for (std::size_t i = 0; i < view.series.size(); ++i) {
    const SeriesView& a = view.series[i];
    const SeriesView& b = back->series[i];
    RC_ASSERT(a.id == b.id && a.key == b.key && a.device == b.device && a.process == b.process);
    RC_ASSERT(a.samples == b.samples && a.first == b.first && a.last == b.last && a.interval_s == b.interval_s);
    RC_ASSERT(a.used_bytes == b.used_bytes && a.peak_bytes == b.peak_bytes && a.level_bytes == b.level_bytes &&
              a.ended == b.ended);
    RC_ASSERT(a.paused == b.paused && a.ignored == b.ignored && a.utilisation_ratio == b.utilisation_ratio);
    RC_ASSERT(a.gauges == b.gauges && a.load == b.load && a.stall == b.stall && a.sites == b.sites &&
              a.headroom == b.headroom && a.wall == b.wall && a.host == b.host && a.still_holds == b.still_holds &&
              a.mark_growth == b.mark_growth);
    RC_ASSERT(a.health == b.health && a.last_xid == b.last_xid);
    RC_ASSERT(same(a.runs, b.runs));
    RC_ASSERT(a.paging == b.paging);
    RC_ASSERT(a.explain == b.explain && a.alerts.size() == b.alerts.size());
    RC_ASSERT(a.verdict.series == b.verdict.series);
    RC_ASSERT(same(a.verdict, b.verdict));
    for (std::size_t k = 0; k < a.alerts.size(); ++k) {
      RC_ASSERT(a.alerts[k].series == b.alerts[k].series);
      RC_ASSERT(same(a.alerts[k], b.alerts[k]));
    }
  }
}

RC_GTEST_PROP(ViewJson, TimesAreExact, (std::int64_t ns)) {
  const Timestamp time{Duration{ns}};
  const std::string text = exact_time(time);
  if (text.substr(0, 4) < "1678" || text.substr(0, 4) > "2261") return;
  RC_ASSERT(parse_exact_time(text) == time);
}

TEST(ViewJson, TimesAsPeopleWriteThem) {
  EXPECT_EQ(exact_time(at(0)), "2026-01-02T03:04:05Z");
  EXPECT_EQ(exact_time(at(0.25)), "2026-01-02T03:04:05.25Z");
  EXPECT_EQ(parse_exact_time("2026-01-02T03:04:05.250Z"), at(0.25));
  for (const char* wrong :
       {"", "Z", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z", "2026-02-30T03:04:05Z",
        "2026-01-02T24:04:05Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.1234567890Z", "2026-01-02T03:04:05.1x2Z",
        "1600-01-02T03:04:05Z", "2026-01-02 03:04:05Z"})
    EXPECT_EQ(parse_exact_time(wrong), std::nullopt) << wrong;
}

TEST(ViewJson, KeysOfSeries) {
  const SeriesKey process{Metric::process_used, "00000000:1d:00.0", 4242, 987654};
  EXPECT_EQ(series_key_text(process), "process_used/00000000:1d:00.0/4242/987654");
  EXPECT_EQ(parse_series_key("process_used/00000000:1d:00.0/4242/987654"), process);
  EXPECT_EQ(parse_series_key("device_used/a/b/1"), (SeriesKey{Metric::device_used, "a/b/1", 0, 0}));
  SeriesKey far = process;
  far.host = "node7.example.com";
  EXPECT_EQ(series_key_text(far), "process_used@node7.example.com/00000000:1d:00.0/4242/987654");
  EXPECT_EQ(parse_series_key(series_key_text(far)), far);
  for (const char* wrong : {"", "device_used", "device_used/", "device_used@/GPU-1", "@node7/GPU-1", "nothing/GPU-1",
                            "process_used/GPU-1", "process_used/GPU-1/1", "process_used//1/2", "process_used/GPU-1/x/2",
                            "process_used/GPU-1/1/", "process_used/GPU-1/-1/2", "process_used/GPU-1/99999999999/2"})
    EXPECT_EQ(parse_series_key(wrong), std::nullopt) << wrong;
}

TEST(ViewJson, AlertIdsAreStableAndDiffer) {
  const SeriesKey key{Metric::device_used, "GPU-1", 0, 0};
  EXPECT_EQ(alert_id(key, at(0)), alert_id(key, at(0)));
  EXPECT_EQ(alert_id(key, at(0)).size(), 16U);
  EXPECT_NE(alert_id(key, at(0)), alert_id(key, at(1)));
  EXPECT_NE(alert_id(key, at(0)), alert_id({Metric::device_used, "GPU-2", 0, 0}, at(0)));
  EXPECT_EQ(nlohmann::json::parse(alert_object_json(key, sample_view().series[0].alerts[0]))["id"],
            alert_id(key, at(1500)));
}

TEST(ViewJson, AnAlertOfItsOwnIsReadBack) {
  const SeriesKey key{Metric::device_used, "GPU-1", 0, 0};
  Alert alert = sample_view().series[0].alerts[0];
  const auto read = parse_alert_object_json(alert_object_json(key, alert));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(alert_object_json(key, *read), alert_object_json(key, alert));
  EXPECT_THAT(parse_alert_object_json(R"({"severity": "hot"})").error().message, ::testing::HasSubstr("severity"));
  EXPECT_THAT(parse_alert_object_json("[").error().message, ::testing::HasSubstr("reading an alert"));
}

TEST(ViewJson, HiddenCommandsAreNowhere) {
  View view = sample_view();
  view.series[1].process->name = "python";
  view.series[0].verdict.suspect = Suspect{4243, 0, "python serve.py --password hunter2", 1};
  view.series[1].process->command = "python serve.py --password hunter2";
  view.series[1].process->start_ticks = 0;
  const std::string all = view_json(view);
  EXPECT_THAT(all, HasSubstr("hunter2"));
  const std::string hidden = view_json(view, [](const ProcessInfo&) { return false; });
  EXPECT_THAT(hidden, ::testing::Not(HasSubstr("hunter2")));
  const auto json = nlohmann::json::parse(hidden);
  EXPECT_EQ(json["series"][1]["process"]["command"], "python");
  EXPECT_EQ(json["series"][1]["process"]["command_hidden"], true);
  EXPECT_EQ(json["series"][0]["verdict"]["suspect"]["command"], "python");
  // A suspect that is no longer in any series: its owner is unknown.
  view.series.pop_back();
  EXPECT_THAT(view_json(view, [](const ProcessInfo&) { return true; }), ::testing::Not(HasSubstr("hunter2")));
}

TEST(ViewJson, WhatIsNotFiniteOrNoTextDoesNoHarm) {
  View view = sample_view();
  view.series[0].verdict.finding.r_squared = std::numeric_limits<double>::quiet_NaN();
  view.series[0].verdict.finding.confidence = std::numeric_limits<double>::infinity();
  view.series[1].process->command = "bad \xff\xfe";
  const auto back = parse_view_json(view_json(view));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->series[0].verdict.finding.r_squared, 0);
  EXPECT_EQ(back->series[1].process->command, "bad \xef\xbf\xbd\xef\xbf\xbd");
}

TEST(ViewJson, MistakesAreNamed) {
  const auto message = [](const char* text) { return parse_view_json(text).error().message; };
  EXPECT_THAT(message("{"), HasSubstr("reading a view"));
  EXPECT_THAT(message("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(message(R"({"time": 5})"), HasSubstr("time: expected a string"));
  EXPECT_THAT(message(R"({"time": "yesterday"})"), HasSubstr("time: expected a time"));
  EXPECT_THAT(
      message(R"({"series": [{"key": "device_used/a"}, {"key": "device_used/b", "verdict": {"severity": "awful"}}]})"),
      HasSubstr("series[1].verdict.severity: expected one of ok, watch, warning, critical"));
  EXPECT_THAT(message(R"({"series": [{"id": -1}]})"), HasSubstr("series[0].id: expected a whole number"));
  EXPECT_THAT(message(R"({"series": [{"key": "x"}]})"), HasSubstr("series[0].key"));
  EXPECT_THAT(message(R"({"series": [{}]})"), HasSubstr("series[0]: expected an object with a key"));
  EXPECT_THAT(message(R"({"skipped_lines": 1e999})"), HasSubstr("reading a view"));
}

TEST(ViewJson, OtherVersionsAreRead) {
  const auto view = parse_view_json(R"({"new": {"a": 1}, "series": [{"key": "device_used/GPU-1", "later": []}]})");
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->series.at(0).key.device_id, "GPU-1");
}

}  // namespace
}  // namespace vramtrack

#include "period/gather.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/event_words.hpp"
#include "core/format.hpp"
#include "core/option.hpp"
#include "core/order.hpp"
#include "report/conclusion_words.hpp"

namespace vramtrack {
namespace {

/// The longest past that a detector's verdict depends on.
constexpr std::chrono::hours kBefore{24};
constexpr std::size_t kMostNotices = 200;

bool starts_watch(const Event& event) {
  return event.kind == Event::Kind::watch_started;
}

}  // namespace

std::string ReportGatherer::name(const SeriesKey& key) {
  return fmt::format("{}/{}/{}/{}{}", to_string(key.metric), key.pid, key.pid_start_ticks, key.device_id,
                     key.host.empty() ? "" : '@' + key.host);
}

bool ReportGatherer::in_range(Timestamp time) const {
  return (!range_.from || time >= *range_.from) && (!range_.to || time < *range_.to);
}

bool ReportGatherer::stood_in_range(const Alert& alert) const {
  return (!range_.to || alert.raised < *range_.to) &&
         (!range_.from || !alert.cleared || *alert.cleared >= *range_.from);
}

void ReportGatherer::begin_anew(Catalog& catalog) {
  if (engine_) keep_views();
  engine_ = std::make_unique<Engine>(config_, catalog);
}

/// A later watch has more data on a series than an earlier one.
void ReportGatherer::keep_views() {
  engine_->finish();
  const auto last = engine_->view();
  findings_ = last->warnings;
  for (const SeriesView& view : last->series) {
    Known& known = known_[name(view.key)];
    const SeriesView before = std::move(known.view);
    known.view = view;
    for (const auto all : {&SeriesView::alerts, &SeriesView::suspicions})
      (known.view.*all).insert((known.view.*all).begin(), (before.*all).begin(), (before.*all).end());
    known.judged = true;
  }
}

void ReportGatherer::take(const Tick& read, Catalog& catalog) {
  const Batch& tick = read.batch;
  const Timestamp time = read.time;
  if (std::any_of(tick.events.begin(), tick.events.end(), starts_watch)) watches_.push_back(time);
  engine_->ingest(tick);
  if (!recording_begin_ && !tick.samples.empty()) recording_begin_ = time;
  for (const Sample& sample : tick.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    Known& known = known_[name(key)];
    if (!known.first) known.first = sample.time;
    known.last = sample.time;
    if (!in_range(sample.time)) continue;
    histories_.add(key, sample.time, sample.bytes);
    ++report_.samples;
    if (!report_.first) report_.first = sample.time;
    report_.last = sample.time;
  }
  for (const DeviceReading& reading : tick.readings)
    if (reading.gpu_utilisation_ratio && in_range(reading.time))
      histories_.add_utilisation(reading.device_id, reading.time, *reading.gpu_utilisation_ratio);
  for (const Event& event : tick.events)
    if (is_for_people(event) && in_range(event.time) && notices_.size() < kMostNotices)
      notices_.push_back({event.time, event.text});
}

Status ReportGatherer::play(Source& source, Catalog& catalog, bool is_closed) {
  begin_anew(catalog);
  TickTaker taker;
  taker.begin_anew = [&](const Tick&) { begin_anew(catalog); };
  taker.take = [&](const Tick& tick) {
    take(tick, catalog);
    return true;
  };
  // Samples before the range determine its first verdicts.
  read_ = read_ticks(source, taker, {std::nullopt, range_.to});
  if (is_closed && read_.at_end) engine_->end_of_recording();
  keep_views();
  report_.skipped_lines = source.notes().skipped_lines;
  report_.warnings = warnings_of(source.notes());
  report_.warnings.insert(report_.warnings.end(), findings_.begin(), findings_.end());
  return read_.broken ? Status(fail(*read_.broken)) : Status();
}

/// Summaries remain where samples have been deleted.
void ReportGatherer::add_summaries(StoreReader& reader, const Catalog& catalog) {
  const auto raw = reader.raw_extent();
  if (!raw) return report_.warnings.push_back(raw.error().message);
  const std::optional<Timestamp> raw_begin = *raw ? std::optional((*raw)->first) : std::nullopt;
  if (raw_begin && range_.from && *raw_begin <= *range_.from) return;
  const auto extents = reader.series();
  if (!extents) return report_.warnings.push_back(extents.error().message);
  TimeRange before = range_;
  if (raw_begin && (!before.to || *raw_begin < *before.to)) before.to = raw_begin;
  for (const SeriesExtent& extent : *extents) {
    if ((before.to && extent.first >= *before.to) || (before.from && extent.last < *before.from)) continue;
    // Minutes if they are kept, otherwise hours; a time covered by both is added only once.
    auto minutes = reader.rollups(extent.key, Resolution::minute, before);
    TimeRange older = before;
    if (minutes && !minutes->empty()) older.to = minutes->front().start;
    auto hours = reader.rollups(extent.key, Resolution::hour, older);
    for (const auto* rollups : {&hours, &minutes}) {
      if (!*rollups) {
        report_.warnings.push_back(rollups->error().message);
        continue;
      }
      for (const Rollup& r : **rollups) {
        HistoryPoint point;
        point.start = r.start;
        point.min = r.min;
        point.max = r.max;
        point.mean = r.mean;
        point.count = r.count;
        histories_.add(extent.key, point);
        report_.first = report_.first ? std::min(*report_.first, r.start) : r.start;
        report_.last = report_.last ? std::max(*report_.last, r.start) : r.start;
      }
    }
    Known& known = known_[name(extent.key)];
    known.first = std::min(known.first.value_or(extent.first), extent.first);
    known.last = std::max(known.last, extent.last);
    if (known.judged) continue;
    known.view.key = extent.key;
    if (const DeviceInfo* device = catalog.device(device_key(extent.key))) known.view.device = *device;
    if (const ProcessInfo* process = catalog.process(process_key(extent.key))) known.view.process = *process;
  }
}

void ReportGatherer::add_utilisation(StoreReader& reader, const Catalog& catalog) {
  for (const DeviceInfo& device : catalog.devices()) {
    const auto minutes = reader.device_minutes(device.id, range_);
    if (!minutes) return report_.warnings.push_back(minutes.error().message);
    for (const DeviceMinute& m : *minutes)
      if (m.busy_ratio)
        histories_.add_utilisation(device.id, m.start, m.start + std::chrono::minutes(1), *m.busy_ratio);
  }
}

/// Adds the alerts of the live watch, regardless of today's detector's verdict on the same samples.
void ReportGatherer::add_recorded_alerts(StoreReader& reader) {
  Catalog catalog;
  auto alerts = reader.alerts(catalog);
  if (!alerts) return report_.warnings.push_back(alerts.error().message);
  alerts_are_recorded_ = true;
  for (Alert& alert : *alerts) {
    if (!stood_in_range(alert)) continue;
    const SeriesKey& key = catalog.key(alert.series);
    PeriodAlert recorded{alert, false};
    if (!alert.cleared)
      recorded.watch_ended =
          std::any_of(watches_.begin(), watches_.end(), [&](Timestamp w) { return w > alert.raised; });
    // Show the alert as it was at the end of the period, not as it ended later.
    if (range_.to && alert.cleared && *alert.cleared >= *range_.to) {
      recorded.alert.cleared.reset();
      recorded.alert.ended = AlertEnd::standing;
    }
    recorded_alerts_[name(key)].push_back(std::move(recorded));
    Known& known = known_[name(key)];
    if (known.judged || !known.view.key.device_id.empty()) continue;
    known.view.key = key;
    if (const DeviceInfo* device = catalog.device(device_key(key))) known.view.device = *device;
    if (const ProcessInfo* process = catalog.process(process_key(key))) known.view.process = *process;
  }
}

void ReportGatherer::assemble(const Catalog& catalog) {
  report_.clock_is_relative = catalog.clock_is_relative;
  report_.since = range_.from;
  report_.until = range_.to;
  report_.bucket_s = histories_.width_s();
  report_.notices = std::move(notices_);
  for (auto& [key_name, known] : known_) {
    PeriodSeries s;
    s.history = histories_.points(known.view.key);
    if (alerts_are_recorded_) {
      s.alerts = std::move(recorded_alerts_[key_name]);
    } else {
      for (Alert& alert : known.view.alerts)
        if (stood_in_range(alert)) s.alerts.push_back({std::move(alert), false});
    }
    known.view.alerts.clear();
    std::erase_if(known.view.suspicions, [&](const Alert& suspicion) { return !stood_in_range(suspicion); });
    // An alert that was active when its samples ended, before the period, has no meaning for the period.
    if (s.history.empty() && (!range_.from || known.last < *range_.from)) continue;
    if (s.history.empty() && s.alerts.empty()) continue;
    s.has_verdict = known.judged;
    s.first_seen = known.first;
    // If its first sample is at the beginning of the recording, it may have existed long before.
    s.seen_from_start = recording_begin_ && known.first &&
                        seconds_between(*recording_begin_, *known.first) <= 2 * known.view.interval_s;
    // The logs of devices and of processes need not end in the same second.
    s.gone = known.judged && known.first && !known.view.ended && report_.last &&
             seconds_between(known.last, *report_.last) > std::max(30.0, 5 * known.view.interval_s);
    s.view = std::move(known.view);
    report_.series.push_back(std::move(s));
  }
  const auto peak = [](const PeriodSeries& s) {
    std::uint64_t most = 0;
    for (const HistoryPoint& p : s.history) most = std::max(most, p.max);
    return most;
  };
  const auto order = [&](const PeriodSeries& a, const PeriodSeries& b) {
    const bool process_a = a.view.key.pid != 0;
    const bool process_b = b.view.key.pid != 0;
    if (process_a != process_b) return process_b;
    const int index_a = a.view.device.index.value_or(INT32_MAX);
    const int index_b = b.view.device.index.value_or(INT32_MAX);
    if (index_a != index_b) return index_a < index_b;
    if (a.view.key.device_id != b.view.key.device_id) return a.view.key.device_id < b.view.key.device_id;
    if (!process_a) return false;
    // Living processes first, worst first.
    const bool ended_a = a.gone || a.view.ended;
    const bool ended_b = b.gone || b.view.ended;
    if (ended_a != ended_b) return ended_b;
    const Timestamp now = report_.last.value_or(Timestamp{});
    const int concern_a = concern(a.view, now);
    const int concern_b = concern(b.view, now);
    return concern_a != concern_b ? concern_a > concern_b : peak(a) > peak(b);
  };
  vramtrack::order(report_.series, order);
}

Error ReportGatherer::nothing_of_store(StoreReader& reader, const std::string& path) const {
  std::string has = "it contains no samples; 'vramtrack watch' records some";
  if (const auto extents = reader.series(); extents && !extents->empty()) {
    Timestamp first = extents->front().first;
    Timestamp last = extents->front().last;
    for (const SeriesExtent& e : *extents) {
      first = std::min(first, e.first);
      last = std::max(last, e.last);
    }
    has = fmt::format("its samples are from {} to {}; pass {} {}", report_.scale.moment(first, false),
                      report_.scale.moment(last, false), name_of(Option::since),
                      report_.scale.moment(std::max(first, last - kBefore), false));
  }
  return Error{fmt::format("{} has no samples from this period: {}", path, has)};
}

Error ReportGatherer::nothing_of(const RecordedPart& part, const Catalog& catalog) const {
  // The file is fine, but covers another time. Reading stopped at --until, so its end is unknown.
  if (read_.first && (range_.from || range_.to))
    return Error{fmt::format("no sample in the requested period: {} {}; {}",
                             part.files.size() == 1 ? printable(part.files.front()) + " is" : "the files are",
                             extent_words(read_, range_, catalog), advice_)};
  return Error{
      fmt::format("no usable sample; check the file, or name its format with {}", name_of(Option::input_format))};
}

Result<PeriodReport> ReportGatherer::gather(const RecordedInfo& kind, const std::vector<std::string>& files,
                                            const LogOptions& logs) {
  TimeRange read = range_;
  if (read.from) *read.from -= kBefore;
  const auto part = plan_one_recorded(kind, files, {logs, read});
  if (!part) return fail(part.error());
  report_.files = part->files;
  report_.is_log = part->store_path.empty();
  Catalog catalog;
  auto source = part->open(catalog);
  if (!source) return fail(source.error());
  report_.scale = catalog.scale;
  std::unique_ptr<StoreReader> store;
  if (!part->store_path.empty()) {
    auto reader = StoreReader::open(part->store_path);
    if (!reader) return fail(reader.error());
    store = std::move(*reader);
  }
  const Status played = play(**source, catalog, part->is_closed());
  if (!played && played.error().voids_earlier) return fail(played.error());
  if (!played)
    report_.warnings.push_back(played.error().message + (store ? "" : "; the samples before that are reported"));
  if (store) {
    // The catalog of the alerts includes devices without remaining samples.
    add_summaries(*store, catalog);
    add_utilisation(*store, catalog);
    add_recorded_alerts(*store);
  }
  assemble(catalog);
  if (report_.first) return std::move(report_);
  return fail(store ? nothing_of_store(*store, part->store_path) : nothing_of(*part, catalog));
}

}  // namespace vramtrack

#include "live/resume.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "host/process.hpp"
#include "source/tick_reader.hpp"

namespace vramtrack {
namespace {

/// The time from which on the series of the last hour have about kMostResumedSamples at one sample per second: there
/// may be fewer raw samples, but never many more.
Timestamp begin_of_end(const std::vector<SeriesExtent>& series, Timestamp now) {
  constexpr std::chrono::hours kLately{1};
  const auto live = static_cast<double>(
      std::count_if(series.begin(), series.end(), [&](const SeriesExtent& s) { return s.last >= now - kLately; }));
  return now - std::min(kResumed, from_seconds(kMostResumedSamples / std::max(1.0, live)));
}

}  // namespace

Result<bool> read_end(StoreReader& reader, Catalog& catalog, Timestamp now, const std::function<void()>& begin_anew,
                      const std::function<void(const Batch&)>& take) {
  const auto series = reader.series();
  if (!series) return fail(series.error());
  if (series->empty()) return false;
  reader.select({begin_of_end(*series, now), now});
  constexpr int kMostDamaged = 64;
  int damaged = 0;
  bool any = false;
  Batch batch;
  while (damaged < kMostDamaged) {
    const auto more = reader.read(catalog, batch);
    if (!more) {
      ++damaged;
      continue;
    }
    if (!*more) break;
    if (std::any_of(batch.events.begin(), batch.events.end(), starts_anew)) {
      begin_anew();
      any = false;
      // Events before that instant belong to the previous watch.
      std::erase_if(batch.events, [&](const Event& event) { return event.kind == Event::Kind::watch_started; });
    }
    any |= !batch.samples.empty();
    take(batch);
  }
  return any;
}

void read_days(StoreReader& reader, Catalog& catalog, Timestamp now, const View& view,
               const std::function<void(SeriesId, const std::vector<std::pair<Timestamp, double>>&)>& report) {
  constexpr std::chrono::hours kWeek{8 * 24};
  const auto all = reader.series();
  if (!all) return;
  for (const SeriesExtent& extent : *all) {
    const SeriesKey& key = extent.key;
    const bool is_device = key.metric == Metric::device_used;
    const bool is_here = key.metric == Metric::process_used &&
                         std::any_of(view.series.begin(), view.series.end(),
                                     [&](const SeriesView& s) { return s.key == key && !s.ended; });
    if (extent.last < now - kWeek || (!is_device && !is_here)) continue;
    const auto hours = reader.rollups(key, Resolution::hour, {now - kWeek, now});
    if (!hours || hours->empty()) continue;
    std::vector<std::pair<Timestamp, double>> floors;
    for (const Rollup& hour : *hours) floors.emplace_back(hour.start, static_cast<double>(hour.min));
    report(catalog.intern(key), floors);
  }
}

std::vector<Event> ended_meanwhile(const View& view, const std::string& proc_root, Timestamp now) {
  std::vector<Event> events;
  std::set<std::pair<std::uint32_t, std::uint64_t>> asked;
  std::string path;
  for (const SeriesView& s : view.series) {
    if (s.key.pid == 0 || s.ended || !asked.insert({s.key.pid, s.key.pid_start_ticks}).second) continue;
    const auto alive = process_alive(proc_root, s.key.pid, path);
    if (alive && alive->start_ticks == s.key.pid_start_ticks) continue;
    events.push_back(Event{
        .time = now, .kind = Event::Kind::process_ended, .pid = s.key.pid, .pid_start_ticks = s.key.pid_start_ticks});
  }
  return events;
}

}  // namespace vramtrack

// top's own watch: the same poll, store and engine as `watch`, without its lines.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "store/store.hpp"
#include "top/feed.hpp"
#include "top/rows.hpp"

namespace vramtrack::top {
namespace {

constexpr std::size_t kMostWarnings = 16;

class LiveTop {
 public:
  LiveTop(const Config& config, std::unique_ptr<Catalog> catalog, std::vector<LiveSource> sources)
      : config_(config),
        catalog_(std::move(catalog)),
        sources_(std::move(sources)),
        engine_(config_, *catalog_, kMaxEndedSeries),
        start_(clock_.now()),
        next_(std::chrono::steady_clock::now()) {
    engine_.on_alert([this](const AlertChange& change) {
      if (store_) warn_if(store_->record(change.alert));
    });
    if (config_.watch.record) open_store();
    open_history();
  }

  SteadyTime step(SteadyTime now, bool& changed) {
    if (now < next_) return next_;
    const auto interval =
        std::chrono::duration_cast<SteadyTime::duration>(from_seconds(config_.watch.interval_seconds));
    // The deadlines stand still while polls are slow or the machine sleeps: missed ones are not made up for.
    next_ += interval * std::max<std::int64_t>(1, (now - next_ + interval) / interval);
    tick();
    changed = true;
    return next_;
  }

  [[nodiscard]] std::shared_ptr<const View> view() const { return engine_.view(); }

  std::vector<top::Point> history(const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
    auto points = joined_history(history_.get(), timeline_, key, from, to, most);
    if (history_)
      if (const std::string error = history_->take_error(); !error.empty()) warn("history: " + error);
    return points;
  }

  std::optional<Timestamp> history_begin(const SeriesKey& key) const {
    return history_ ? history_->begin(key) : std::nullopt;
  }

  void describe(top::Model& model) const {
    model.mode = top::Mode::live;
    std::string names;
    for (const LiveSource& live : sources_) names += (names.empty() ? "" : "+") + std::string(live.name);
    model.source = names;
    model.interval_s = config_.watch.interval_seconds;
    model.recording = store_ ? store_->path() : std::string();
    model.warnings = warnings_;
    if (model.earlier_alerts.empty()) model.earlier_alerts = earlier_alerts_;
  }

  void finish() {
    if (store_) warn_if(store_->flush());
  }

 private:
  void open_store() {
    StoreConfig store = config_.store;
    store.path = store_path(config_.store);
    auto opened = Store::open(store, *catalog_, start_);
    if (!opened) return warn(fmt::format("not recording: {}", opened.error().message));
    store_ = std::move(*opened);
    Batch started;
    started.events.push_back(Event{.time = start_, .kind = Event::Kind::watch_started});
    warn_if(store_->append(started));
  }

  /// What was recorded before, by whomever. Without a store file there is none, and that is no error.
  void open_history() {
    auto history = top::StoreHistory::open(store_path(config_.store));
    if (!history) return;
    history_ = std::make_unique<top::StoreHistory>(std::move(*history));
    Catalog catalog;
    const auto alerts = history_->alerts(catalog);
    if (!alerts) return warn("earlier alerts: " + alerts.error().message);
    for (const Alert& alert : *alerts) {
      SeriesView series;
      series.key = catalog.key(alert.series);
      if (const DeviceInfo* device = catalog.device(device_key(series.key))) series.device = *device;
      if (const ProcessInfo* process = catalog.process(process_key(series.key))) series.process = *process;
      top::AlertRow row{series.key, top::alert_who(series), alert};
      // Nobody saw its end: the watch that raised it was ended, and this one began knowing nothing.
      if (row.alert.ended == AlertEnd::standing) {
        row.alert.ended = AlertEnd::withdrawn;
        row.alert.end_reason = "the watch that raised it has ended";
      }
      earlier_alerts_.push_back(std::move(row));
    }
  }

  void tick() {
    batch_.clear();
    const Timestamp now = clock_.now();
    if (clock_.take_set_back()) warn("the clock was set back: samples go on by the old one; restart to follow the new");
    for (LiveSource& live : sources_) {
      const auto polled = live.source->poll(now, batch_);
      if (!polled) warn(fmt::format("{}: {}", live.name, polled.error().message));
      for (const std::string& warning : live.source->notes().warnings) warn(warning);
    }
    if (store_) {
      warn_if(store_->append(batch_));
      for (const std::string& notice : store_->take_notices()) warn(notice);
    }
    timeline_.take(batch_, *catalog_);
    engine_.ingest(batch_);
    engine_.finish();
    if (++ticks_ % 600 == 0) timeline_.forget_retired(*catalog_);
  }

  void warn(std::string text) {
    if (!told_.insert(text).second) return;
    if (told_.size() > 256) told_.clear();
    warnings_.push_back(std::move(text));
    if (warnings_.size() > kMostWarnings) warnings_.erase(warnings_.begin());
  }
  void warn_if(const Status& status) {
    if (!status) warn("recording: " + status.error().message);
  }

  const Config config_;
  std::unique_ptr<Catalog> catalog_;
  std::vector<LiveSource> sources_;
  Engine engine_;
  StampClock clock_;
  Timestamp start_;
  SteadyTime next_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<top::StoreHistory> history_;
  std::vector<top::AlertRow> earlier_alerts_;
  top::Timeline timeline_;
  Batch batch_;
  std::uint64_t ticks_ = 0;
  std::vector<std::string> warnings_;
  std::set<std::string> told_;
};

}  // namespace

std::vector<top::Point> joined_history(top::StoreHistory* store, const top::Timeline& seen, const SeriesKey& key,
                                       Timestamp from, Timestamp to, std::size_t most) {
  const std::vector<top::Point>* own = seen.points(key);
  const Timestamp own_from = own != nullptr && !own->empty() ? own->front().from : to;
  std::vector<top::Point> all;
  if (store != nullptr && from < own_from) all = store->points(key, from, std::min(to, own_from), most);
  if (own != nullptr) all.insert(all.end(), own->begin(), own->end());
  return top::resample(all, from, to, most);
}

TopSource live_source(const Config& config, std::unique_ptr<Catalog> catalog, std::vector<LiveSource> sources) {
  auto live = std::make_shared<LiveTop>(config, std::move(catalog), std::move(sources));
  TopSource top;
  top.step = [live](SteadyTime now, bool& changed) { return live->step(now, changed); };
  top.view = [live] { return live->view(); };
  top.feed.history = [live](const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
    return live->history(key, from, to, most);
  };
  top.feed.history_begin = [live](const SeriesKey& key) { return live->history_begin(key); };
  top.describe = [live](top::Model& model) { live->describe(model); };
  top.finish = [live] { live->finish(); };
  return top;
}

}  // namespace vramtrack::top

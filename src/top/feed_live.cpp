// top's own watch: the same poll, store and engine as `watch`, without its output lines.
#include <fmt/format.h>

#include <algorithm>

#include "store/store.hpp"
#include "top/feed.hpp"
#include "top/rows.hpp"
#include "top/sites_watch.hpp"

namespace vramtrack::top {
namespace {

/// Points of ended processes are dropped every this many ticks.
constexpr std::uint64_t kForgetEvery = 600;

class LiveTop {
 public:
  LiveTop(const Config& config, LoopInput input, Clock clock)
      : config_(config), loop_(config_, std::move(input), std::move(clock)) {
    Listener listener;
    listener.warning = [this](const std::string& text) { warn(text); };
    listener.event = [this](const Event& event) {
      if (event.kind == Event::Kind::note) warn(event.text);
    };
    listener.tick = [this](const Batch& batch) { remember(batch); };
    loop_.pipeline().listen(std::move(listener));
    StoreConfig store = config_.store;
    store.path = store_path(config_.store);
    if (config_.watch.record) loop_.record_into(store);
    open_history(store.path);
  }

  SteadyTime step(SteadyTime now, bool& changed) {
    if (now < loop_.next()) return loop_.next();
    news_.clear();
    loop_.tick();
    changed = true;
    return loop_.next();
  }

  [[nodiscard]] std::shared_ptr<const View> view() { return loop_.pipeline().view(); }

  std::vector<Point> history(const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
    auto points = joined_history(history_.get(), timeline_, key, from, to, most);
    if (history_)
      if (const std::string error = history_->take_error(); !error.empty()) warn("history: " + error);
    return points;
  }

  std::optional<Timestamp> history_begin(const SeriesKey& key) const {
    return history_ ? history_->begin(key) : std::nullopt;
  }

  void describe(Model& model) {
    model.mode = Mode::live;
    model.source = fmt::format("{}", fmt::join(loop_.source_names(), "+"));
    model.interval_s = config_.watch.interval_seconds;
    const Store* store = loop_.pipeline().store();
    model.recording = store != nullptr ? store->path() : std::string();
    model.warnings = view()->warnings;
    for (const auto* more : {&lasting_, &news_})
      for (const std::string& text : *more)
        if (std::find(model.warnings.begin(), model.warnings.end(), text) == model.warnings.end())
          model.warnings.push_back(text);
    if (model.earlier_alerts.empty()) model.earlier_alerts = earlier_alerts_;
  }

  SitesNow sites(std::uint32_t pid) { return sites_.look(pid); }

  void finish() { loop_.finish(); }

 private:
  /// Opens data recorded earlier by any program. Without a store file there is no history, which is not an error.
  void open_history(const std::string& path) {
    auto history = StoreHistory::open(path);
    if (!history) return;
    history_ = std::make_unique<StoreHistory>(std::move(*history));
    Catalog catalog;
    const auto alerts = history_->alerts(catalog);
    if (!alerts) return lasting_.push_back("earlier alerts: " + alerts.error().message);
    for (const Alert& alert : *alerts) {
      SeriesView series;
      series.key = catalog.key(alert.series);
      if (const DeviceInfo* device = catalog.device(device_key(series.key))) series.device = *device;
      if (const ProcessInfo* process = catalog.process(process_key(series.key))) series.process = *process;
      AlertRow row{series.key, alert_who(series), alert};
      // Its end was not recorded: the watch that raised it stopped, and this one started without knowledge of it.
      if (row.alert.ended == AlertEnd::standing) {
        row.alert.ended = AlertEnd::withdrawn;
        row.alert.end_reason = "the watch that raised it has ended";
      }
      earlier_alerts_.push_back(std::move(row));
    }
  }

  void remember(const Batch& batch) {
    timeline_.take(batch, loop_.catalog());
    if (loop_.cost().polls % kForgetEvery == 0) timeline_.forget_retired(loop_.catalog());
  }

  /// A past event is shown once; ongoing ones are among the View's warnings.
  void warn(const std::string& text) { news_.push_back(text); }

  const Config config_;
  Timeline timeline_;
  std::vector<std::string> lasting_;  ///< warnings from opening the store
  std::vector<std::string> news_;     ///< warnings from the last tick, and from reading the history since
  Loop loop_;                         ///< after the members that its listener uses
  std::unique_ptr<StoreHistory> history_;
  std::vector<AlertRow> earlier_alerts_;
  SitesWatch sites_{sites_of_run};
};

}  // namespace

std::vector<Point> joined_history(StoreHistory* store, const Timeline& seen, const SeriesKey& key, Timestamp from,
                                  Timestamp to, std::size_t most) {
  const std::vector<Point>* own = seen.points(key);
  const Timestamp own_from = own != nullptr && !own->empty() ? own->front().from : to;
  std::vector<Point> all;
  if (store != nullptr && from < own_from) all = store->points(key, from, std::min(to, own_from), most);
  if (own != nullptr) all.insert(all.end(), own->begin(), own->end());
  return resample(all, from, to, most);
}

TopSource live_source(const Config& config, LoopInput input, Clock clock) {
  auto live = std::make_shared<LiveTop>(config, std::move(input), std::move(clock));
  TopSource top;
  top.step = [live](SteadyTime now, bool& changed) { return live->step(now, changed); };
  top.view = [live] { return live->view(); };
  top.feed.history = [live](const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
    return live->history(key, from, to, most);
  };
  top.feed.history_begin = [live](const SeriesKey& key) { return live->history_begin(key); };
  top.feed.sites = [live](std::uint32_t pid) { return live->sites(pid); };
  top.describe = [live](Model& model) { live->describe(model); };
  top.finish = [live] { live->finish(); };
  return top;
}

}  // namespace vramtrack::top

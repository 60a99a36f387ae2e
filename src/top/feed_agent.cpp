// top's connection to a running agent: its View, history and acknowledgements. It neither polls nor records anything.
#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>

#include "agent/client.hpp"
#include "core/format.hpp"
#include "report/view_json.hpp"
#include "top/feed.hpp"
#include "top/rows.hpp"
#include "top/sites_watch.hpp"

namespace vramtrack::top {
namespace {

/// A local agent answers in milliseconds; the screen must not freeze because of a slow one.
constexpr double kTimeout_s = 1;
/// This request runs in the background, because the agent forwards it to a run.
constexpr double kSitesTimeout_s = 3;
constexpr std::chrono::milliseconds kLeastInterval{200};
constexpr std::chrono::seconds kRetry{2};
/// How often to request alerts and the agent's identity, and to retry failed requests.
constexpr std::chrono::seconds kQuestionsEvery{5};
constexpr std::size_t kMostKept = 24;

class AgentTop {
 public:
  explicit AgentTop(const std::string& socket)
      : client_(socket, kTimeout_s),
        view_(std::make_shared<View>()),
        sites_([socket](std::uint32_t pid) { return agent::AgentClient(socket, kSitesTimeout_s).sites(pid); }) {}

  Status attach() {
    if (Status known = identify(); !known) return known;
    auto view = client_.view();
    if (!view) return fail(view.error());
    take(std::move(*view));
    return {};
  }

  SteadyTime step(SteadyTime now, bool& changed) {
    if (now < next_) return next_;
    auto view = client_.view();
    if (!view) {
      error_ = fmt::format("the agent does not answer: {}; showing data from {}", view.error().message,
                           view_->scale.moment(view_->time, false));
      changed = true;
      next_ = now + kRetry;
      return next_;
    }
    const bool is_back = !std::exchange(error_, {}).empty();
    changed = changed || is_back;
    if (view->time != view_->time || view->series.size() != view_->series.size()) changed = true;
    take(std::move(*view));
    if (now >= next_questions_ || is_back) {
      (void)identify();  // another agent may have taken its place
      changed = refresh_alerts() || changed;
      ask_history_ = true;
      next_questions_ = now + kQuestionsEvery;
    }
    next_ = now + std::max<SteadyTime::duration>(
                      kLeastInterval, std::chrono::duration_cast<SteadyTime::duration>(from_seconds(interval_s_)));
    return next_;
  }

  std::vector<Point> history(const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
    const std::vector<Point>* own = seen_.points(key);
    const Timestamp own_from = own != nullptr && !own->empty() ? own->front().from : to;
    std::vector<Point> all;
    if (from < own_from) all = recorded(key, from, own_from, from_seconds(seconds_between(from, to)), most);
    if (own != nullptr) all.insert(all.end(), own->begin(), own->end());
    return resample(all, from, to, most);
  }

  std::optional<Timestamp> history_begin(const SeriesKey& key) {
    const std::string text = series_key_text(key);
    const auto known = begins_.find(text);
    if (known != begins_.end()) return known->second;
    // A decade at hourly resolution: the first point is the beginning of the recording.
    const auto points = ask_history(key, view_->time - std::chrono::hours{24 * 3650}, view_->time, 1000);
    if (!points) return std::nullopt;
    std::optional<Timestamp> begin;
    if (!points->empty()) {
      begin = points->front().time;
      const auto first = ask_history(key, *begin, *begin + std::chrono::hours{2}, 1000);
      if (first && !first->empty()) begin = first->front().time;
    }
    begins_.emplace(text, begin);
    return begin;
  }

  void describe(Model& model) const {
    model.mode = Mode::agent;
    model.source = name_;
    model.simulated = simulated_;
    model.interval_s = interval_s_;
    model.warnings = view_->warnings;
    if (!history_error_.empty()) model.warnings.push_back(history_error_);
    if (!error_.empty()) model.warnings.push_back(error_);
    model.acknowledged = acknowledged_;
    model.silenced = silenced_;
    model.earlier_alerts = earlier_alerts_;
  }

  Status acknowledge(const AlertId& id) {
    Status done = client_.acknowledge(alert_id(id.key, id.raised), "");
    if (done) acknowledged_.insert(id);
    return done;
  }

  [[nodiscard]] std::shared_ptr<const View> view() const { return view_; }
  SitesNow sites(std::uint32_t pid) { return sites_.look(pid); }

 private:
  struct Kept {
    SeriesKey key;
    Timestamp from;
    Timestamp to;
    Duration span;  ///< span of the chart it was read for: another zoom level needs another resolution
    std::vector<Point> points;
  };

  void take(View view) {
    Batch batch;
    interval_s_ = 0;
    for (const SeriesView& s : view.series) {
      if (s.last) batch.samples.push_back({*s.last, catalog_.intern(s.key), s.used_bytes});
      if (s.interval_s > 0 && (interval_s_ <= 0 || s.interval_s < interval_s_)) interval_s_ = s.interval_s;
    }
    if (interval_s_ <= 0) interval_s_ = 1;
    seen_.take(batch, catalog_);
    view_ = std::make_shared<const View>(std::move(view));
  }

  /// Points from the agent's store, cached: data from before this program began no longer changes.
  std::vector<Point> recorded(const SeriesKey& key, Timestamp from, Timestamp to, Duration span, std::size_t most) {
    auto it = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
      return k.key == key && k.from <= from && k.to >= to && k.span <= span * 2 && k.span * 2 >= span;
    });
    if (it == kept_.end()) {
      const Timestamp begin = from - span / 2;
      const auto points = ask_history(key, begin, to, most * 2);
      if (!points) return {};  // not cached, so it is requested again
      Kept kept{key, begin, to, span, {}};
      for (const agent::AgentPoint& p : *points)
        kept.points.push_back({p.time, p.time, static_cast<double>(p.min), p.mean, static_cast<double>(p.max), 1});
      kept_.push_front(std::move(kept));
      if (kept_.size() > kMostKept) kept_.pop_back();
    } else {
      kept_.splice(kept_.begin(), kept_, it);
    }
    return kept_.front().points;
  }

  /// nullopt if it failed. A failure need not be permanent, but the request is not repeated for every frame.
  std::optional<std::vector<agent::AgentPoint>> ask_history(const SeriesKey& key, Timestamp from, Timestamp to,
                                                            std::size_t most) {
    if (!ask_history_ || !error_.empty()) return std::nullopt;
    auto points = client_.history(key, from, to, most);
    history_error_.clear();
    if (points) return std::move(*points);
    ask_history_ = false;
    history_error_ = "the agent's history is not available: " + points.error().message;
    return std::nullopt;
  }

  Status identify() {
    auto version = client_.version();
    if (!version) return fail(version.error());
    if (started_ && *started_ != version->started) {
      kept_.clear();
      begins_.clear();
    }
    started_ = version->started;
    name_ = fmt::format("agent pid {}", version->pid);
    simulated_ = version->simulated;
    return {};
  }

  /// Whether an acknowledgement has changed.
  bool refresh_alerts() {
    const auto alerts = client_.alerts();
    if (!alerts) return false;
    const std::set<AlertId> before = std::exchange(acknowledged_, {});
    const auto silenced_before = std::exchange(silenced_, {});
    earlier_alerts_.clear();
    for (const agent::AgentAlert& words : *alerts) {
      if (words.acknowledged) acknowledged_.insert({words.key, words.alert.raised});
      if (words.silenced)
        silenced_[{words.key, words.alert.raised}] =
            words.silenced->endless() ? Timestamp::max() : words.silenced->ends;
      SeriesView series;
      series.key = words.key;
      series.device = words.device;
      if (words.key.pid != 0) {
        series.process.emplace();
        series.process->pid = words.key.pid;
        series.process->name = words.process;
      }
      earlier_alerts_.push_back({words.key, alert_who(series), words.alert});
    }
    return acknowledged_ != before || silenced_ != silenced_before;
  }

  agent::AgentClient client_;
  std::string name_;
  std::string simulated_;
  std::shared_ptr<const View> view_;
  double interval_s_ = 1;
  Catalog catalog_;
  Timeline seen_;
  std::list<Kept> kept_;
  std::map<std::string, std::optional<Timestamp>> begins_;
  std::set<AlertId> acknowledged_;
  std::map<AlertId, Timestamp> silenced_;
  std::vector<AlertRow> earlier_alerts_;  ///< including those of the View; the display shows each only once
  std::optional<Timestamp> started_;      ///< when the agent started
  std::string error_;                     ///< why the agent does not answer
  std::string history_error_;
  bool ask_history_ = true;
  SteadyTime next_{};
  SteadyTime next_questions_{};
  SitesWatch sites_;
};

}  // namespace

Result<TopSource> agent_source(const std::string& socket) {
  auto agent = std::make_shared<AgentTop>(socket);
  if (const auto attached = agent->attach(); !attached) return fail(attached.error());
  TopSource top;
  top.step = [agent](SteadyTime now, bool& changed) { return agent->step(now, changed); };
  top.view = [agent] { return agent->view(); };
  top.feed.history = [agent](const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
    return agent->history(key, from, to, most);
  };
  top.feed.history_begin = [agent](const SeriesKey& key) { return agent->history_begin(key); };
  top.feed.sites = [agent](std::uint32_t pid) { return agent->sites(pid); };
  top.describe = [agent](Model& model) { agent->describe(model); };
  top.acknowledge = [agent](const AlertId& id) { return agent->acknowledge(id); };
  top.finish = [] {};
  return top;
}

}  // namespace vramtrack::top

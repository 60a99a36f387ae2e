// Playback for top: a recording or a simulation, tick by tick at a chosen speed, as a live watch would have seen it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/format.hpp"
#include "source/tick_reader.hpp"
#include "top/feed.hpp"

namespace vramtrack::top {
namespace {

/// No step takes longer, so that keys are handled between steps.
constexpr std::chrono::milliseconds kSlice{40};
constexpr std::chrono::milliseconds kFrame{100};
/// A recording of known length takes this many seconds by default; others run at this speed.
constexpr double kDefaultLength_s = 120;
constexpr double kDefaultSpeed = 60;
constexpr double kLeastSpeed = 0.125;
constexpr double kGreatestSpeed = 65536;
constexpr std::size_t kPointsPerSeries = 8192;

class Playback {
 public:
  Playback(const Config& config, PlaybackOptions options) : config_(config), options_(std::move(options)) {
    state_.speed = options_.speed;
    if (!options_.store_path.empty())
      if (auto store = StoreHistory::open(options_.store_path))
        store_ = std::make_unique<StoreHistory>(std::move(*store));
    if (store_ && !options_.extent) options_.extent = store_->extent();
    if (options_.extent) {
      state_.begin =
          options_.range.from ? std::max(options_.extent->first, *options_.range.from) : options_.extent->first;
      state_.end = options_.range.to ? std::min(options_.extent->second, *options_.range.to) : options_.extent->second;
    }
    if (state_.speed <= 0) {
      state_.speed = kDefaultSpeed;
      // The next power of two, so that halving and doubling give round figures.
      if (state_.end)
        for (state_.speed = 1; state_.speed * kDefaultLength_s < seconds_between(*state_.begin, *state_.end);)
          state_.speed *= 2;
    }
  }

  Status begin_anew() {
    auto catalog = std::make_unique<Catalog>();
    auto source = options_.open(*catalog);
    if (!source) return fail(source.error());
    pipeline_.reset();
    reader_.reset();
    source_ = std::move(*source);
    catalog_ = std::move(catalog);
    timeline_ = Timeline(kPointsPerSeries);
    new_pipeline();
    reader_.emplace(*source_);
    waiting_ = nullptr;
    state_.ended = false;
    played_.reset();
    anchor_.reset();
    raised_ = 0;
    return {};
  }

  /// Skips data before the range. Error: the range contains none, and waiting would not help.
  Status find_first() {
    if ((!options_.range.from && !options_.range.to) || fill()) return {};
    if (!broken_.empty()) return fail(broken_);
    const auto moment = [this](Timestamp time) { return catalog_->moment(time); };
    if (options_.extent) read_ = options_.extent;
    std::string why = "it has no samples";
    if (read_ && options_.range.from && read_->second < *options_.range.from)
      why = fmt::format("it ends at {}, before {}", moment(read_->second), moment(*options_.range.from));
    else if (read_ && options_.range.to && read_->first >= *options_.range.to)
      why = fmt::format("it begins at {}, not before {}", moment(read_->first), moment(*options_.range.to));
    else if (read_)
      why = "it has no sample in the range that was asked for";
    return fail(fmt::format("nothing to play in {}: {}", options_.name, why));
  }

  SteadyTime step(SteadyTime now, bool& changed) {
    if (state_.ended || (!state_.playing && !state_.jumping)) {
      anchor_.reset();
      return SteadyTime::max();
    }
    const SteadyTime until = now + kSlice;
    const std::uint64_t raised = raised_;
    while (options_.clock.steady() < until) {
      if (!fill()) {
        state_.ended = true;
        if (options_.is_closed && waiting_ == nullptr) {
          pipeline_->set_files(options_.files);  // until then, more may follow, as with a watch
          pipeline_->end_of_recording();
        }
        state_.jumping = false;
        state_.end = played_;
        changed = true;
        return SteadyTime::max();
      }
      const Timestamp time = waiting_->time;
      if (!state_.jumping) {
        const SteadyTime due = due_at(time, now);
        if (due > options_.clock.steady()) return std::min(due, now + kFrame * 100);
      }
      take(*waiting_);
      waiting_ = nullptr;
      changed = true;
      if (state_.jumping && (target_ ? *played_ >= *target_ : raised_ > raised)) {
        state_.jumping = false;
        state_.playing = false;
        target_.reset();
        return SteadyTime::max();
      }
    }
    // Playback has fallen behind, and does not catch up.
    if (!state_.jumping) anchor_.reset();
    return options_.clock.steady();
  }

  void play(Play what) {
    anchor_.reset();
    switch (what) {
      case Play::none:
        return;
      case Play::toggle:
        if (state_.jumping) {
          state_.jumping = false;
          state_.playing = false;
        } else {
          state_.playing = !state_.playing;
        }
        return;
      case Play::slower:
        state_.speed = std::max(kLeastSpeed, state_.speed / 2);
        return;
      case Play::faster:
        state_.speed = std::min(kGreatestSpeed, state_.speed * 2);
        return;
      case Play::next_alert:
        state_.jumping = !state_.ended;
        target_.reset();
        return;
      case Play::previous_alert:
        return jump_back();
      case Play::restart:
        if (begin_anew()) state_.playing = true;
        return;
    }
  }

  std::vector<Point> history(const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
    return joined_history(store_.get(), timeline_, key, from, to, most);
  }

  [[nodiscard]] std::optional<Timestamp> history_begin(const SeriesKey& key) const {
    return store_ ? store_->begin(key) : std::nullopt;
  }

  void describe(Model& model) const {
    model.mode = options_.mode;
    model.source = options_.name;
    model.playback = state_;
    model.warnings = warnings_of(source_->notes());
    const auto seen = view();
    model.warnings.insert(model.warnings.end(), seen->warnings.begin(), seen->warnings.end());
    if (!broken_.empty()) model.warnings.push_back(broken_);
  }

  [[nodiscard]] std::shared_ptr<const View> view() const { return pipeline_->view(); }

 private:
  /// False at the end of the recording.
  bool fill() {
    while (waiting_ == nullptr) {
      waiting_ = reader_->next();
      if (reader_->broken()) broken_ = reader_->broken()->message;
      if (waiting_ != nullptr) read_ = {read_ ? read_->first : waiting_->time, waiting_->time};
      if (waiting_ == nullptr || (options_.range.to && waiting_->time >= *options_.range.to)) return false;
      if (options_.range.from && waiting_->time < *options_.range.from) waiting_ = nullptr;
    }
    return true;
  }

  SteadyTime due_at(Timestamp time, SteadyTime now) {
    if (!anchor_) anchor_ = Anchor{now, played_.value_or(time)};
    const double ahead_s = seconds_between(anchor_->time, time) / state_.speed;
    return anchor_->at + std::chrono::duration_cast<SteadyTime::duration>(from_seconds(ahead_s));
  }

  void take(const Tick& tick) {
    if (tick.starts_anew) pipeline_->begin_anew(tick.time);
    timeline_.take(tick.batch, *catalog_);
    pipeline_->take(tick.batch);
    played_ = tick.time;
    if (!state_.begin) state_.begin = tick.time;
  }

  void new_pipeline() {
    pipeline_ = std::make_unique<Pipeline>(config_, *catalog_);
    Listener listener;
    listener.alert = [this](const AlertNotice& change) {
      if (change.incident.news != AlertNews::raised) return;
      ++raised_;
      if (raises_.empty() || change.alert.raised > raises_.back()) raises_.push_back(change.alert.raised);
    };
    pipeline_->listen(std::move(listener));
  }

  /// Restarts from the beginning, up to the last alert before this moment, because an engine cannot go backward.
  void jump_back() {
    const Timestamp here = played_.value_or(Timestamp{});
    std::optional<Timestamp> before;
    for (const Timestamp raised : raises_)
      if (raised < here) before = raised;
    if (!before || !begin_anew()) return;
    target_ = before;
    state_.jumping = true;
  }

  struct Anchor {
    SteadyTime at;
    Timestamp time;
  };

  const Config config_;
  PlaybackOptions options_;
  PlaybackState state_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Pipeline> pipeline_;
  Timeline timeline_{kPointsPerSeries};
  std::unique_ptr<StoreHistory> store_;
  std::optional<TickReader> reader_;  ///< not read_ticks(), because playback stops between ticks and jumps back
  const Tick* waiting_ = nullptr;     ///< the next tick to play
  std::optional<std::pair<Timestamp, Timestamp>> read_;  ///< first and last tick read, in the range or not
  std::optional<Timestamp> played_;
  std::optional<Anchor> anchor_;
  std::uint64_t raised_ = 0;
  std::vector<Timestamp> raises_;    ///< alerts raised in everything played so far
  std::optional<Timestamp> target_;  ///< the target of a jump to a known time
  std::string broken_;
};

}  // namespace

Result<TopSource> playback_source(const Config& config, PlaybackOptions options) {
  auto playback = std::make_shared<Playback>(config, std::move(options));
  if (const auto begun = playback->begin_anew(); !begun) return fail(begun.error());
  if (const auto found = playback->find_first(); !found) return fail(found.error());
  TopSource top;
  top.step = [playback](SteadyTime now, bool& changed) { return playback->step(now, changed); };
  top.view = [playback] { return playback->view(); };
  top.feed.history = [playback](const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
    return playback->history(key, from, to, most);
  };
  top.feed.history_begin = [playback](const SeriesKey& key) { return playback->history_begin(key); };
  top.describe = [playback](Model& model) { playback->describe(model); };
  top.play = [playback](Play what) { playback->play(what); };
  top.finish = [] {};
  return top;
}

}  // namespace vramtrack::top

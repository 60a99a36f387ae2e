// watch: poll, record, judge, print; until interrupted or the time is up.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <set>

#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/interrupt.hpp"
#include "cli/session.hpp"
#include "report/format.hpp"
#include "source/source.hpp"
#include "store/store.hpp"

namespace vramtrack::cli {
namespace {

using std::chrono::steady_clock;

/// Stamps that never go back: when somebody sets the clock back, the old clock goes on.
class StampClock {
 public:
  Timestamp now() {
    const auto wall = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
    const auto steady = steady_clock::now();
    if (last_ && wall > *last_) offset_ = Duration{0};  // set forward again
    if (last_ && wall + offset_ <= *last_) {
      const Timestamp expected = *last_ + (steady - last_steady_);
      offset_ = expected - wall;
      set_back_ = true;
    }
    last_ = wall + offset_;
    last_steady_ = steady;
    return *last_;
  }
  /// True once after the clock was set back.
  bool take_set_back() { return std::exchange(set_back_, false); }

 private:
  std::optional<Timestamp> last_;
  steady_clock::time_point last_steady_;
  Duration offset_{0};
  bool set_back_ = false;
};

struct LiveSource {
  std::string_view name;
  std::unique_ptr<Source> source;
  std::string error;   ///< the last one told; empty while it works
  Session::Told told;  ///< of its warnings
};

/// Processes that have ended are kept so long: a watch may run for months.
constexpr std::size_t kMaxEndedSeries = 256;

bool wanted(const SourcesConfig& config, std::string_view name) {
  return config.enabled.empty() ||
         std::find(config.enabled.begin(), config.enabled.end(), name) != config.enabled.end();
}

/// Errors read "what: why; next step". In one line for all sources there is room for the first part: the
/// steps are doctor's to tell.
std::string without_next_step(const std::string& message) {
  return message.substr(0, message.find(';'));
}

/// The sources that have something to read; why the others have not goes to `reasons`.
std::vector<LiveSource> open_sources(const SourcesConfig& config, Catalog& catalog, std::string& reasons) {
  std::vector<LiveSource> open;
  for (const SourceInfo* info : live_sources()) {
    if (!wanted(config, info->name)) continue;
    auto source = info->make(config, catalog);
    if (source)
      open.push_back({info->name, std::move(*source), {}, {}});
    else
      reasons +=
          fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", info->name, without_next_step(source.error().message));
  }
  return open;
}

class Watch {
 public:
  Watch(const Options& options, const Config& config, Console& console, Catalog& catalog,
        std::vector<LiveSource> sources)
      : options_(options),
        config_(config),
        console_(console),
        sources_(std::move(sources)),
        session_(config, catalog, console, options.json, false, kMaxEndedSeries),
        start_(clock_.now()) {
    if (config.watch.record) open_store(catalog);
    session_.on_alert([this](const AlertChange& change) {
      if (store_) tell_store(store_->record(change.alert));
    });
  }

  int run() {
    const auto interval =
        std::chrono::duration_cast<steady_clock::duration>(from_seconds(config_.watch.interval_seconds));
    const auto every = from_seconds(config_.watch.status_every_seconds);
    const auto begin = steady_clock::now();
    std::optional<steady_clock::time_point> end;
    if (options_.duration_s)
      end = begin + std::chrono::duration_cast<steady_clock::duration>(from_seconds(*options_.duration_s));
    auto next_status = begin;
    for (auto deadline = begin; Interrupt::sleep_until(deadline);) {
      tick();
      const auto now = steady_clock::now();
      if (now >= next_status) {
        session_.status();
        next_status = std::max(next_status + every, now);
      }
      if (console_.gone() || options_.once) break;
      if (end && deadline >= *end) break;
      // The deadlines stand still while polls are slow or the machine sleeps: missed ones are not made up for.
      deadline += interval * std::max<std::int64_t>(1, (now - deadline + interval) / interval);
      if (end) deadline = std::min(deadline, *end);  // the last poll is at the end, not before it
    }
    finish();
    return 0;
  }

 private:
  void open_store(const Catalog& catalog) {
    StoreConfig store = config_.store;
    store.path = store_path(config_);
    auto opened = Store::open(store, catalog, start_);
    if (opened) {
      store_ = std::move(*opened);
      // A replay begins anew here, as this watch does.
      Batch started;
      started.events.push_back(Event{.time = start_, .kind = Event::Kind::watch_started});
      tell_store(store_->append(started));
    } else {
      console_.warn(fmt::format("not recording: {}; watching goes on without it (--no-record says so on purpose)",
                                opened.error().message));
    }
  }

  void tick() {
    batch_.clear();
    const Timestamp now = clock_.now();
    if (clock_.take_set_back())
      console_.warn("the clock was set back: samples go on by the old one; restart vramtrack to follow the new one");
    for (LiveSource& live : sources_) poll(live, now);
    if (store_) {
      tell_store(store_->append(batch_));
      for (const std::string& notice : store_->take_notices()) console_.warn(notice);
    }
    session_.take(batch_);
  }

  void poll(LiveSource& live, Timestamp now) {
    const Result<Progress> polled = live.source->poll(now, batch_);
    const std::string error = polled ? std::string() : polled.error().message;
    if (error != live.error) {
      console_.warn(error.empty() ? fmt::format("{} answers again", live.name)
                                  : fmt::format("{}: {}", live.name, error));
      live.error = error;
    }
    session_.tell_notes(live.source->notes(), live.told);
  }

  /// The store itself says each cause once.
  void tell_store(const Status& status) {
    if (!status) console_.warn("recording: " + status.error().message);
  }

  void finish() {
    if (store_) tell_store(store_->flush());
    if (options_.once) return;
    session_.last_status(false);
    if (options_.json) return;
    std::string out =
        fmt::format("watched {}: {} samples of {} polls, {}", format_duration(seconds_between(start_, clock_.now())),
                    session_.counts().samples, session_.counts().ticks, alert_counts(session_.counts()));
    if (store_) out += fmt::format("; recorded into {}", store_->path());
    session_.print(out + '\n');
  }

  const Interrupt interrupt_;  ///< first: from here on a signal ends in a flush and a summary
  const Options& options_;
  const Config& config_;
  Console& console_;
  std::vector<LiveSource> sources_;
  Session session_;
  StampClock clock_;
  Timestamp start_;
  std::unique_ptr<Store> store_;
  Batch batch_;
};

}  // namespace

int watch(const Options& options, const LayeredConfig& layers, Console& console) {
  const Config& config = layers.config();
  Catalog catalog;
  std::string reasons;
  std::vector<LiveSource> sources = open_sources(config.sources, catalog, reasons);
  if (sources.empty()) {
    if (!options.or_simulate) {
      console.error(fmt::format(
          "no GPU to watch: {}; 'vramtrack doctor' says what to do, 'vramtrack simulate' needs no GPU", reasons));
      return 2;
    }
    console.write(
        fmt::format("No GPU to watch here ({}); showing a simulated training job that leaks instead.\n", reasons));
    Options simulated;
    simulated.command = Command::simulate;
    simulated.json = options.json;
    // Long enough to be read on a terminal; a log need not wait.
    if (console.is_terminal()) simulated.within_s = 20;
    return simulate(simulated, layers, console);
  }
  return Watch(options, config, console, catalog, std::move(sources)).run();
}

}  // namespace vramtrack::cli

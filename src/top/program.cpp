#include "top/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "agent/acknowledgements.hpp"
#include "core/local_time.hpp"
#include "core/option.hpp"
#include "host/held_process.hpp"
#include "host/interrupt.hpp"
#include "live/clock.hpp"
#include "report/view_json.hpp"
#include "top/draw.hpp"
#include "top/rows.hpp"
#include "top/terminal.hpp"
#include "top/theme.hpp"

namespace vramtrack::top {
namespace {

using std::chrono::steady_clock;

/// Draw at most this often, even for a fast replay: nobody can read faster, and a slow terminal would lag behind.
constexpr std::chrono::milliseconds kFrame{66};
/// If nothing is due, wait for keys for this long at a time.
constexpr std::chrono::milliseconds kLongestWait{1000};
constexpr std::chrono::seconds kAcknowledgedEvery{1};

/// The time when this machine booted, from /proc/stat.
std::optional<Timestamp> boot_time(const std::string& proc_root) {
  std::ifstream in(proc_root + "/stat");
  for (std::string word; in >> word;) {
    std::int64_t s = 0;
    if (word == "btime" && in >> s) return Timestamp{std::chrono::seconds{s}};
  }
  return std::nullopt;
}

std::string user_name() {
  const char* user = std::getenv("USER");
  return user != nullptr && *user != '\0' ? std::string(user) : fmt::format("uid {}", ::getuid());
}

class Program {
 public:
  Program(const ProgramOptions& options, TopSource source) : proc_root_(options.proc_root), source_(std::move(source)) {
    model_.feed = source_.feed;
    model_.only = options.only;
    take_view();
    model_.read_only = options.read_only;
    model_.ui.mouse = options.mouse;
    const char* no_colour = std::getenv("NO_COLOR");
    model_.no_colour = no_colour != nullptr && *no_colour != '\0';
    model_.ui.theme = std::max(0, find_theme(model_.no_colour ? "monochrome" : options.theme));
    if (!options.store_path.empty()) acknowledged_.emplace(agent::acknowledgements_path(options.store_path));
    source_.describe(model_);
    refresh_acknowledged();
    // A simulated process's start ticks have nothing to do with this machine's boot.
    if ((model_.mode == Mode::live || model_.mode == Mode::agent) && model_.simulated.empty())
      model_.boot = boot_time(options.proc_root);
  }

  Result<std::vector<std::string>> run() {
    {
      auto terminal = Terminal::open();
      if (!terminal) return fail(terminal.error());
      const LocalTimes local(true);  // of the machine with the terminal
      // Created after the terminal is set up, because curses sets its own handler for SIGINT.
      const Interrupt interrupt;
      loop(*terminal);
    }
    source_.finish();
    source_.describe(model_);
    return model_.warnings;
  }

  std::string screen_once(int width, int height) {
    const Interrupt interrupt;
    step_once();
    stale_ = true;
    refresh();
    std::string text = drawn(width, height).text();
    source_.finish();
    return text;
  }

 private:
  Screen drawn(int width, int height) const {
    Screen screen(width, height);
    draw(screen, model_);
    return screen;
  }

  /// Steps until there is something to show: after the first poll, an agent's first answer, or the end of a recording.
  void step_once() {
    while (!Interrupt::requested()) {
      if (source_.play) source_.play(Play::next_alert);  // as fast as possible
      bool changed = false;
      const auto next = source_.step(steady_clock::now(), changed);
      source_.describe(model_);
      if (model_.playback ? model_.playback->ended : !source_.view()->series.empty()) return;
      if (source_.play) continue;
      const auto clock = machine_clock();
      if (!clock.sleep_until(std::min(next, steady_clock::now() + kLongestWait))) return;
    }
  }

  void loop(Terminal& terminal) {
    bool dirty = true;
    auto last_frame = steady_clock::time_point::min();
    while (!Interrupt::requested()) {
      bool changed = false;
      const auto next = source_.step(steady_clock::now(), changed);
      stale_ = stale_ || changed;
      dirty = refresh_acknowledged() || dirty;
      auto now = steady_clock::now();
      if ((dirty || stale_) && (dirty || now >= last_frame + kFrame)) {
        refresh();
        shown_ = drawn(terminal.width(), terminal.height());
        terminal.listen_to_mouse(model_.ui.mouse);
        terminal.show(shown_, themes()[static_cast<std::size_t>(model_.ui.theme)]);
        last_frame = now;
        dirty = false;
      }
      now = steady_clock::now();
      auto until = std::min(next, now + kLongestWait);
      if (stale_) until = std::min(until, last_frame + kFrame);
      const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(until - now);
      // Handle all pending key presses before the next frame.
      for (auto key = terminal.key(std::max(wait, std::chrono::milliseconds{0})); key;
           key = terminal.key(std::chrono::milliseconds{0})) {
        if (on_key(*key, terminal)) return;
        dirty = true;
      }
    }
  }

  void refresh() {
    if (stale_ && !(model_.ui.paused && !model_.playback)) {
      take_view();
      stale_ = false;
    }
    source_.describe(model_);
    // Keep acknowledgements that the agent did not accept.
    model_.acknowledged.insert(unkept_.begin(), unkept_.end());
    if (!model_.warnings.empty() && model_.warnings.back() != shown_warning_) {
      shown_warning_ = model_.warnings.back();
      if (model_.ui.message.empty()) model_.ui.message = shown_warning_;
    }
  }

  void take_view() {
    const auto all = source_.view();
    model_.view = narrowed(all, model_.only.gpus);
    if (model_.only.gpus.empty() || !model_.view->series.empty()) return;
    model_.known_gpus.clear();
    for (const DeviceRow& device : devices(*all))
      model_.known_gpus += (model_.known_gpus.empty() ? "" : ", ") + short_name(device);
  }

  /// Reads acknowledgements from other programs, too, because all programs on that store share the file. True if
  /// something has changed.
  bool refresh_acknowledged() {
    const auto now = steady_clock::now();
    if (!acknowledged_ || now < next_acknowledged_) return false;
    next_acknowledged_ = now + kAcknowledgedEvery;
    std::set<AlertId> seen;
    for (const AlertRow& row : every_alert(model_))
      if (acknowledged_->find(alert_id(row.key, row.alert.raised))) seen.insert({row.key, row.alert.raised});
    // Keep acknowledgements that could not be saved to the file.
    seen.insert(unkept_.begin(), unkept_.end());
    const bool changed = seen.size() != model_.acknowledged.size();
    model_.acknowledged = std::move(seen);
    return changed;
  }

  /// Returns true to quit.
  bool on_key(Key key, Terminal& terminal) {
    const auto pointer = key == kPointer ? terminal.pointer() : std::nullopt;
    if (key == kPointer && !pointer) return false;
    const Request request = pointer ? handle(model_, *pointer, shown_) : handle(model_, key);
    if (request.redraw) terminal.redraw();
    if (request.acknowledge) acknowledge_incident(*request.acknowledge);
    if (request.ask_signal) ask_signal(*request.ask_signal);
    if (request.drop_signal) held_.reset();
    if (request.send_signal) send_signal(*request.send_signal);
    if (request.play != Play::none && source_.play) {
      source_.play(request.play);
      stale_ = true;
    }
    return request.quit;
  }

  /// The device's alert and its process's are one leak, so they are acknowledged together.
  void acknowledge_incident(const AlertId& id) {
    const auto rows = alerts(model_);
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const AlertRow& r) {
      return AlertId{r.key, r.alert.raised} == id;
    });
    if (row != rows.end())
      for (const AlertId& also : row->also)
        if (!model_.acknowledged.contains(also)) acknowledge(also);
    acknowledge(id);
  }

  void acknowledge(const AlertId& id) {
    if (!model_.acknowledged.insert(id).second) {
      model_.ui.message = "it is acknowledged already";
      return;
    }
    model_.ui.message = "acknowledged";
    Status kept;
    if (source_.acknowledge)
      kept = source_.acknowledge(id);
    else if (acknowledged_)
      kept = acknowledged_->set(alert_id(id.key, id.raised), {time_of_day(), user_name(), ""});
    else
      model_.ui.message = "acknowledged until this program ends, because nothing is recorded";
    if (!kept) unkept_.insert(id);
    if (!kept) model_.ui.message = kept.error().message + "; it holds until this program ends";
  }

  void ask_signal(const SeriesKey& key) {
    if (model_.mode == Mode::replay || model_.mode == Mode::simulation || !model_.simulated.empty()) {
      model_.ui.message = "this is not a live process: it cannot be signalled";
      return;
    }
    if (model_.read_only) {
      model_.ui.message = fmt::format("signals are off ({})", name_of(Option::read_only));
      return;
    }
    auto held = HeldProcess::open(proc_root_, key.pid, key.pid_start_ticks);
    if (!held) {
      model_.ui.message = held.error().message;
      return;
    }
    held_.emplace(std::move(*held));
    const ProcessInfo& info = held_->info();
    SignalTarget target;
    target.pid = info.pid;
    target.user = info.user;
    target.command = info.command.empty() ? info.name : info.command;
    SeriesView series;
    series.key = key;
    if (const auto at = started(model_, series))
      target.started = clock_words(at->time, *model_.view) + ' ' + zone_name(at->time);
    model_.ui.target = std::move(target);
    model_.ui.signal = 0;
  }

  void send_signal(int choice) {
    constexpr std::array<int, kSignals.size()> kNumbers = {SIGINT, SIGTERM, SIGKILL};
    const auto index = static_cast<std::size_t>(choice);
    if (held_) {
      const Status sent = held_->send(kNumbers[index]);
      model_.ui.message =
          sent ? fmt::format("SIG{} sent to pid {}", kSignals[index].name, held_->info().pid) : sent.error().message;
    }
    held_.reset();
    model_.ui.target.reset();
  }

  const std::string proc_root_;
  TopSource source_;
  Model model_;
  Screen shown_{0, 0};
  std::optional<agent::Acknowledgements> acknowledged_;
  steady_clock::time_point next_acknowledged_{};
  std::set<AlertId> unkept_;
  std::optional<HeldProcess> held_;  ///< set while the dialog is open
  bool stale_ = false;               ///< there is a newer View than the one shown
  std::string shown_warning_;
};

}  // namespace

std::string screen_once(const ProgramOptions& options, TopSource source, int width, int height) {
  return Program(options, std::move(source)).screen_once(width, height);
}

Result<std::vector<std::string>> run_program(const ProgramOptions& options, TopSource source) {
  return Program(options, std::move(source)).run();
}

}  // namespace vramtrack::top

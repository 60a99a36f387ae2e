// Model: the data from which a screen is drawn. A plain value: drawing changes nothing, keys change only `ui`.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/view.hpp"
#include "report/sites.hpp"
#include "top/timeline.hpp"

namespace vramtrack::top {

/// Access to data that is not in the View, provided by the source: own engine, playback, or an agent's client.
struct Feed {
  /// At most `most` points of the series within [from, to), as far back as known. Called for every frame: must be cheap
  /// or cached.
  std::function<std::vector<Point>(const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most)> history;
  /// The beginning of the series' history; nullopt: use that of the View.
  std::function<std::optional<Timestamp>(const SeriesKey& key)> history_begin;
  /// The lines of a process that hold memory, as far as known now. Called for every frame, too; empty if no process is
  /// alive, as in a recording.
  std::function<SitesNow(std::uint32_t pid)> sites;
};

/// Identity of an alert across restarts.
struct AlertId {
  SeriesKey key;
  Timestamp raised;
  friend bool operator<(const AlertId& a, const AlertId& b) {
    const auto tied = [](const AlertId& x) {
      return std::tie(x.raised, x.key.device_id, x.key.metric, x.key.pid, x.key.pid_start_ticks, x.key.host);
    };
    return tied(a) < tied(b);
  }
  friend bool operator==(const AlertId&, const AlertId&) = default;
};

/// An alert of this program or of an earlier one, with everything needed to show it without its series.
struct AlertRow {
  SeriesKey key;
  std::string who;  ///< from alert_who(): "GPU 0, pid 4242 python train.py; NVIDIA A10"
  Alert alert;
  std::vector<AlertId> also{};  ///< for a device's alert: the alerts of processes that report the same leak
};

enum class Mode : std::uint8_t { live, agent, replay, simulation };

/// The state of a replay or a simulation.
struct PlaybackState {
  std::optional<Timestamp> begin;
  std::optional<Timestamp> end;  ///< where the recording ends, if known
  double speed = 1;              ///< recorded seconds per second
  bool playing = true;
  bool jumping = false;  ///< on the way to the next alert
  bool ended = false;
};

enum class Page : std::uint8_t {
#define VRAMTRACK_PAGE(name, key, keys, help) name,
#include "top/pages.def"
#undef VRAMTRACK_PAGE
};
/// Every page, in the order of pages.def.
inline constexpr auto kPages = std::to_array<Page>({
#define VRAMTRACK_PAGE(name, key, keys, help) Page::name,
#include "top/pages.def"
#undef VRAMTRACK_PAGE
});
enum class Sort : std::uint8_t { severity, memory, growth, gpu, cpu, started, user, pid };
inline constexpr std::size_t kSorts = 8;

/// The process to be signalled, as read again when the dialog opened, rather than the text of its row.
struct SignalTarget {
  std::uint32_t pid = 0;
  std::string user;
  std::string command;
  std::string started;
};

/// What --user, --pid and --gpu select; empty lists select everything.
struct Only {
  std::vector<std::string> users;   ///< names, or uids as text
  std::vector<std::uint32_t> pids;  ///< as listed by the driver
  std::vector<std::string> gpus;    ///< indices, UUIDs or their beginnings
};

struct Ui {
  Page page = Page::overview;
  Page back = Page::overview;  ///< the page to which Escape leads from detail
  bool help = false;
  int help_scroll = 0;
  std::string device_id;             ///< the selected device; empty: the first
  std::optional<SeriesKey> process;  ///< the selected row of the process table
  bool this_device_only = false;     ///< the process table omits processes on other devices
  SeriesKey detail;                  ///< the series on the detail page
  double zoom_s = 0;                 ///< span of the detail chart; 0: the whole history
  std::optional<Timestamp> pan_end;  ///< end of the chart; nullopt: now, moving with time
  bool fit_scale = false;            ///< the detail chart's scale fits the curve, instead of from 0 to the capacity
  int detail_scroll = 0;
  std::optional<AlertId> alert;  ///< the selected alert
  std::string filter;
  bool editing_filter = false;
  Sort sort = Sort::severity;
  bool reversed = false;
  bool mouse = true;    ///< mouse events are requested from the terminal
  bool paused = false;  ///< live: the screen is frozen, but watching continues
  int theme = 0;
  std::string message;                 ///< the result of the last key, until the next one
  std::optional<SignalTarget> target;  ///< set while the signal dialog is open
  int signal = 0;                      ///< index into kSignals
};

struct SignalChoice {
  std::string_view name;
  std::string_view help;
};
inline constexpr std::array<SignalChoice, 3> kSignals = {
    {{"INT", "interrupt, as Ctrl-C does"}, {"TERM", "ask it to end"}, {"KILL", "end it at once; nothing is saved"}}};

struct Model {
  std::shared_ptr<const View> view;  ///< never null
  Feed feed;
  Ui ui;
  Only only;
  std::string known_gpus{};  ///< "GPU 0, GPU 1": with Only::gpus, the devices to choose from
  Mode mode = Mode::live;
  std::string source;     ///< the source of data: "nvml", or the name of a file or scenario
  std::string simulated;  ///< for an agent: the scenario that it simulates; empty: real data
  double interval_s = 0;  ///< live: the time between two samples
  std::string recording;  ///< the store being recorded into; empty: none
  std::optional<PlaybackState> playback;
  std::optional<Timestamp> boot;  ///< boot time of the displayed machine, to compute when processes started
  std::vector<AlertRow> earlier_alerts;
  std::set<AlertId> acknowledged;
  std::map<AlertId, Timestamp> silenced;  ///< the time until which notifications are muted; the maximum: forever
  std::vector<std::string> warnings;      ///< from sources and the store, the latest last
  bool no_colour = false;                 ///< NO_COLOR is set: themes with colours are unavailable
  bool read_only = false;                 ///< signals must not be sent
};

}  // namespace vramtrack::top

// The contents and order of the lists on the screens. Shared by drawing and keys, so that the selected row is the shown
// one. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/health.hpp"
#include "report/tone.hpp"
#include "top/model.hpp"
#include "top/screen.hpp"

namespace vramtrack::top {

/// A device; `used` is null if the driver reports only what its processes hold.
struct DeviceRow {
  std::string id;
  const SeriesView* any = nullptr;  ///< some series of the device, for its DeviceInfo; never null
  const SeriesView* used = nullptr;
};

/// The devices in the View's order. The result points into the View.
std::vector<DeviceRow> devices(const View& view);
/// The view restricted to the devices in `gpus` and what is on them; a MIG instance counts for its GPU. The view itself
/// if `gpus` is empty.
std::shared_ptr<const View> narrowed(std::shared_ptr<const View> view, const std::vector<std::string>& gpus);
/// Index of the selected device in `rows`, 0 by default.
std::size_t selected_device(const Model& model, const std::vector<DeviceRow>& rows);
/// The short name of the device: "GPU 0", "MIG 3f2a…".
std::string short_name(const DeviceRow& device);

/// Living processes that pass Only and the filter, in the chosen order. The filter consists of words, all of which must
/// occur in the pid, user, command, framework, container, pod or job (ignoring case).
std::vector<const SeriesView*> processes(const Model& model);
/// Index of the selected process; nullopt for none.
std::optional<std::size_t> selected_process(const Model& model, const std::vector<const SeriesView*>& rows);

/// The subject of an alert, with its distinguishing part first: "GPU 0 NVIDIA A10"; "GPU 0, pid 4242 python train.py;
/// NVIDIA A10".
std::string alert_who(const SeriesView& series);

/// All alerts, including those of earlier programs, each once, the latest first.
std::vector<AlertRow> every_alert(const Model& model);
/// The same, one per leak: a process's alert is merged with that of its device (core/incident.hpp).
std::vector<AlertRow> alerts(const Model& model);
std::size_t selected_alert(const Model& model, const std::vector<AlertRow>& rows);
/// The number of active alerts that are not acknowledged.
std::size_t open_alerts(const Model& model);

/// The series with that key; nullptr if the View has none.
const SeriesView* find(const View& view, const SeriesKey& key);
/// The last bytes of another series of the device, such as device_reserved.
std::optional<double> last_bytes(const View& view, const std::string& device_id, Metric metric);

Role role_of(Tone tone);
/// Colour for the figures next to the state; only the state itself is highlighted.
Role figure_role(Tone tone);

/// Role::plain if the device is healthy or its condition is unknown.
Role condition_role(Condition condition);

std::string_view sort_name(Sort sort);

/// When the process started: from its start ticks and the boot, else the first sample, which is an upper bound.
struct Started {
  Timestamp time;
  bool at_most = false;
};
std::optional<Started> started(const Model& model, const SeriesView& process);

/// The time as text: "08:22:35", with the day if it differs from the view's; "+1h 05m" if times are not dates; "step
/// 1,200" if steps are counted.
std::string clock_words(Timestamp time, const View& view);

/// Columns for clock_words() and for Scale::rate(), which are longer if steps are counted.
int clock_width(const Scale& scale);
int growth_width(const Scale& scale);

/// The job or container as text: "job 1234", "pod 8f3a…", "ctr 12ab…"; empty if there is none.
std::string container_words(const ProcessInfo& process);

/// "no alert so far", with the reason why nobody has been notified of a displayed leak, the most severe one.
std::string no_alert_words(const Model& model);

}  // namespace vramtrack::top

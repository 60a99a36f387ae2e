// Notifications: applies [notify]. Shared by the commands that watch.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "act/notify.hpp"
#include "core/config.hpp"
#include "core/view.hpp"
#include "live/pipeline.hpp"
#include "live/silences.hpp"

namespace vramtrack {

/// The notifier that [notify] configures; nullptr if it names nobody, or if it is not available: `warn` has then
/// received the reason, and watching continues. `store_path`: the queue is kept beside it; if empty, nothing survives a
/// restart. `simulated`: the scenario's name, given in every message; empty: real. `now`: the time of day; called from
/// any thread.
std::unique_ptr<act::Notifier> open_notifier(const Config& config, const std::string& store_path,
                                             const std::string& simulated, std::function<Timestamp()> now,
                                             const Warn& warn);

/// What the notifier receives about one change of an alert. `now`: the time of day, for a view whose times have no
/// date.
act::Note note_of(const AlertNotice& notice, Timestamp now);

/// The listener that passes every alert to the notifier, and the notifier's reports about its deliveries to `warn`. An
/// alert covered by one of `silences` is reported when the silence has ended, if it still stands; its end is reported
/// then, too, if its beginning was reported. All must outlive the listener.
Listener notifying(act::Notifier& notifier, Silences& silences, Warn warn);

/// Before the end: the last alerts are tried once, for at most some seconds; what is left over is reported. Returns
/// whether everything since the beginning has been delivered.
bool finish_notifications(act::Notifier& notifier, bool kept, const Warn& warn);

}  // namespace vramtrack

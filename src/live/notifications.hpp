// Notifications: [notify] put to work. Shared by the commands that watch.
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

/// The notifier that [notify] asks for; nullptr when it names nobody, or when it cannot be had: then `warn` has heard
/// why, and watching goes on. `store_path`: the queue is kept beside it; empty: nothing is kept over a restart.
/// `simulated`: the scenario's name, said in every message; empty: real. `now`: the time of day; called from any
/// thread.
std::unique_ptr<act::Notifier> open_notifier(const Config& config, const std::string& store_path,
                                             const std::string& simulated, std::function<Timestamp()> now,
                                             const Warn& warn);

/// What the notifier is told of one change of an alert. `now`: the time of day, for a view whose times have no date.
act::Note note_of(const View& view, const SeriesView& series, const Alert& alert, AlertNews news, Timestamp now);

/// The listener that tells the notifier of every alert, and `warn` of what the notifier has to say of its deliveries.
/// An alert that one of `silences` covers is told when the silence has ended and it still stands; that it is over, too,
/// is told then where its beginning was told. All must outlive the listener.
Listener notifying(act::Notifier& notifier, Silences& silences, Warn warn);

/// Before the end: the last alerts are tried once, at most some seconds; what is left is said. Returns whether all has
/// been delivered, from the beginning.
bool finish_notifications(act::Notifier& notifier, bool kept, const Warn& warn);

}  // namespace vramtrack

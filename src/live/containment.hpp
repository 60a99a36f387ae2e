// Containment: applies the policies of the configuration to a live loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "act/notify.hpp"
#include "act/runner.hpp"
#include "core/config.hpp"
#include "live/pipeline.hpp"

namespace vramtrack {

/// The path of the off file: act.off-file, else beside the store; empty if nothing is recorded and none is named.
std::string acts_off_path(const ActConfig& config, const std::string& store_path);

/// The runner of config.policies; nullptr if there are none and an earlier run left nothing to undo, or if it is not
/// available: `warn` then gets the reason, and watching continues. `store_path`: the audit is kept beside it; if empty,
/// every run is a dry run. `simulated`: so is that of a simulation. `notifier` (it must outlive the runner) may be
/// null.
std::unique_ptr<act::Runner> open_containment(const Config& config, const std::string& store_path, bool simulated,
                                              act::Notifier* notifier, act::Tools tools, std::function<Timestamp()> now,
                                              const Warn& warn);

/// The policies of a configuration that was reloaded.
Status use_policies(act::Runner& runner, const Config& config);

/// The listener that shows each tick's View to `runner`, and passes its messages to `warn`. Both must outlive it.
Listener containing(act::Runner& runner, const Pipeline& pipeline, Warn warn);

/// The name of this process's user.
std::string own_user_name();

}  // namespace vramtrack

// Where the configuration is, and all of its layers applied.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/result.hpp"
#include "core/settings.hpp"

namespace vramtrack::cli {

/// --config, else $XDG_CONFIG_HOME/vramtrack/config.toml (~/.config where that is unset or not absolute).
/// Empty when there is no home.
std::string config_path(const Options& options);

/// File, environment, --set, then the options that are settings (--detector, --interval, ...), all checked.
/// A missing file is an error only when --config named it.
Result<LayeredConfig> load_config(const Options& options);

/// What to tell of variables that begin with VRAMTRACK_ and are no setting: nothing is ignored silently.
std::vector<std::string> ignored_variables();

}  // namespace vramtrack::cli

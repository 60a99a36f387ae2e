// Finds the configuration and applies all of its layers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/settings.hpp"

namespace vramtrack::cli {

/// What the command line says about the configuration.
struct ConfigRequest {
  /// An option that is a setting.
  struct Override {
    std::string_view setting;  ///< "watch.interval-seconds"
    SettingValue value;
    std::string_view option;  ///< "--interval": the value's origin, and for messages
  };

  std::optional<std::string> file;       ///< from --config
  std::vector<std::string> assignments;  ///< from --set, in order
  std::vector<Override> overrides;       ///< override the assignments; the last one for a setting wins
};

/// --config, else $XDG_CONFIG_HOME/vramtrack/config.toml (~/.config where that is unset or not absolute).
/// Empty when there is no home.
std::string config_path(const ConfigRequest& request);

/// File, environment, --set, then the options that are settings (--detector, --interval, ...), all checked.
/// A missing file is an error only when --config names it.
Result<LayeredConfig> load_config(const ConfigRequest& request);

/// Warnings about variables that begin with VRAMTRACK_ but are not settings: nothing is ignored silently.
std::vector<std::string> ignored_variables();

}  // namespace vramtrack::cli

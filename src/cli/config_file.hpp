// Finds the configuration and applies all of its layers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/settings.hpp"

namespace vramtrack::cli {

/// The configuration options of the command line.
struct ConfigRequest {
  /// An option that sets a setting.
  struct Override {
    std::string_view setting;  ///< "watch.interval-seconds"
    SettingValue value;
    std::string_view option;  ///< "--interval": the origin of the value, used in messages
  };

  std::optional<std::string> file;       ///< from --config
  std::vector<std::string> assignments;  ///< from --set, in order
  std::vector<Override> overrides;       ///< take precedence over the assignments; the last one for a setting wins
};

/// The path from --config, else $XDG_CONFIG_HOME/vramtrack/config.toml (~/.config if that is unset or not absolute).
/// Empty if there is no home directory.
std::string config_path(const ConfigRequest& request);

/// Applies the file, the environment, --set, and the options that are settings (--detector, --interval, ...), and
/// checks all of them. A missing file is an error only if --config names it.
Result<LayeredConfig> load_config(const ConfigRequest& request);

/// Warnings about variables that begin with VRAMTRACK_ but are not settings, so that nothing is ignored silently.
std::vector<std::string> ignored_variables();

}  // namespace vramtrack::cli

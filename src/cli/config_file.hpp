// Where the configuration is, and all of its layers applied.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/settings.hpp"

namespace vramtrack::cli {

/// What the command line says of the configuration.
struct ConfigRequest {
  /// An option that is a setting.
  struct Override {
    std::string_view setting;  ///< "watch.interval-seconds"
    SettingValue value;
    std::string_view option;  ///< "--interval": the value's origin, and for messages
  };

  std::optional<std::string> file;       ///< of --config
  std::vector<std::string> assignments;  ///< of --set, in order
  std::vector<Override> overrides;       ///< stronger than the assignments; the last of one setting wins
};

/// --config, else $XDG_CONFIG_HOME/vramtrack/config.toml (~/.config where that is unset or not absolute).
/// Empty when there is no home.
std::string config_path(const ConfigRequest& request);

/// File, environment, --set, then the options that are settings (--detector, --interval, ...), all checked.
/// A missing file is an error only when --config names it.
Result<LayeredConfig> load_config(const ConfigRequest& request);

/// What to tell of variables that begin with VRAMTRACK_ and are no setting: nothing is ignored silently.
std::vector<std::string> ignored_variables();

}  // namespace vramtrack::cli

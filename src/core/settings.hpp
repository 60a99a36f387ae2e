// Settings: the table of config.def, and the layers that fill a Config from it:
// command line, then environment, then file, then the defaults of core/config.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/config.hpp"
#include "core/result.hpp"

namespace vramtrack {

using SettingValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// What a reload of the configuration (SIGHUP) does with a changed setting in a running agent.
enum class Reload : std::uint8_t {
  live,     ///< it takes effect at once
  restart,  ///< it takes effect after a restart, and the agent reports so
  unused,   ///< no part of the agent reads it
};

/// The unit of settings that name a file with a token.
inline constexpr std::string_view kTokenFile = "file with a token";

/// One row of config.def. Rows live for the whole program.
struct Setting {
  std::string_view section;
  std::string_view key;
  std::string_view unit;
  double min = 0;  ///< for numbers; min == max == 0: not a number
  double max = 0;
  Reload reload = Reload::restart;
  std::string_view binds;
  std::string_view help;
  std::string_view when;
  SettingValue (*get)(const Config& config) = nullptr;
  /// REQUIRES: `value` holds the alternative that get() returns.
  void (*set)(Config& config, const SettingValue& value) = nullptr;

  [[nodiscard]] std::string name() const { return std::string(section) + '.' + std::string(key); }
};

/// All settings in the order of config.def.
std::span<const Setting> settings();

/// Names of the settings that differ between the two and that an agent running with `running` adopts only after a
/// restart.
std::vector<std::string> settings_for_restart(const Config& running, const Config& next);

/// "section.key", or a bare key of [detection]; '_' is read as '-'. nullptr if there is none.
const Setting* find_setting(std::string_view name);

/// The known name with the smallest edit distance to `name`; empty if `known` is empty.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);
/// The same if it may be the intended one; otherwise empty: a far-fetched name misleads more than no name.
std::string_view near_name(std::string_view name, std::span<const std::string_view> known);
/// "the nearest is 'x'", or "choose one of x, y, z" if none is near.
std::string near_words(std::string_view name, std::span<const std::string_view> known);

/// A Config and, for each row of settings(), its origin: "default", "FILE:LINE", "VRAMTRACK_...", "--set".
class LayeredConfig {
 public:
  LayeredConfig();

  [[nodiscard]] const Config& config() const { return config_; }
  /// REQUIRES: `setting` is an element of settings().
  [[nodiscard]] const std::string& origin(const Setting& setting) const;

  /// Applies the TOML text of `file` (the name is for messages only). Apply the layers from the weakest to
  /// the strongest: each overrides the ones before. An unknown section or key, a wrong type or a value out of
  /// range is an Error that names file, line and the nearest known key; then nothing has been applied.
  Status apply_file(std::string_view toml, std::string_view file);
  /// Applies one environment variable if its name begins with VRAMTRACK_SECTION_; others are ignored.
  Status apply_variable(std::string_view name, std::string_view text);
  /// For a variable that begins with VRAMTRACK_ and that apply_variable ignored: the message about it, with the nearest
  /// existing variable. Empty if there is none to report, or for a variable of the tests or the probe.
  static std::string ignored_variable(std::string_view name);
  /// Applies "section.key=value", or "key=value" for a key of [detection]; `origin` as in "--set".
  Status apply_assignment(std::string_view assignment, std::string_view origin);
  /// Sets one value, with the same checks as any other.
  Status apply(const Setting& setting, SettingValue value, std::string origin);

  /// Checks relations between settings (critical-hours <= warning-hours). Call it once every layer has been applied.
  [[nodiscard]] Status check() const;

 private:
  Config config_;
  std::vector<std::string> origins_;
};

/// Reads a value as the command line and the environment write it: numbers and words bare; a list as a TOML
/// array (["a", "b"]) or as one bare element (names may be joined by commas: nvml,drm). Not yet range-checked.
Result<SettingValue> parse_setting(const Setting& setting, std::string_view text);

/// "a number from 0 to 1 (ratio)": the accepted values of a setting, for messages.
std::string expected_value(const Setting& setting);

/// The value as it is written in the file: 0.7, true, "text", ["a", "b"].
std::string toml_text(const SettingValue& value);

/// The file that `config init` writes: every section and key with its help, unit and default, commented out.
std::string config_template();

/// The Markdown table of one section of docs/CONFIG.md, and the list of sections.
std::string reference_table(std::string_view section);
std::vector<std::string_view> setting_sections();

}  // namespace vramtrack

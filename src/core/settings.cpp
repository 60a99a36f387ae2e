#include "core/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/command.hpp"
#include "core/regex.hpp"

namespace vramtrack {
namespace {

template <class T>
SettingValue boxed(const T& value) {
  return SettingValue{value};
}

/// The table: each row's accessors are generated from the member named in config.def.
#define VRAMTRACK_SETTING(section, key, member, unit, min, max, reload, binds, help, when) \
  Setting{#section,                                                                        \
          key,                                                                             \
          unit,                                                                            \
          min,                                                                             \
          max,                                                                             \
          Reload::reload,                                                                  \
          binds,                                                                           \
          help,                                                                            \
          when,                                                                            \
          [](const Config& c) { return boxed(c.member); },                                 \
          [](Config& c, const SettingValue& v) { c.member = std::get<std::decay_t<decltype(c.member)>>(v); }},

constexpr std::array kSettings = {
#include "core/config.def"
};
#undef VRAMTRACK_SETTING

/// Edit distance: letters to insert, omit or change; swapping two neighbours counts as one.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> next(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = std::exchange(row, std::move(next));
  }
  return row[b.size()];
}

std::string with_dashes(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c == '_') c = '-';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

constexpr std::string_view kVariablePrefix = "VRAMTRACK_";

/// "section.key" for VRAMTRACK_SECTION_KEY, whether or not there is such a key; nullopt if there is no such section.
std::optional<std::string> variable_setting(std::string_view name) {
  if (!name.starts_with(kVariablePrefix)) return {};
  const std::string rest = with_dashes(name.substr(kVariablePrefix.size()));
  for (const std::string_view section : setting_sections())
    if (rest.size() > section.size() && rest.starts_with(section) && rest[section.size()] == '-')
      return std::string(section) + '.' + rest.substr(section.size() + 1);
  return {};
}

/// For longer names the distance means nothing, and a hostile name must not cost quadratic time.
constexpr std::size_t kMostOfAName = 64;

/// An incomplete name is nearer than one with any typing error.
std::size_t distance_to(std::string_view name, std::string_view candidate) {
  const bool begun = name.size() > 2 && candidate.substr(0, name.size()) == name;
  return begun ? 1 : edit_distance(name, candidate);
}

std::string unknown_setting(std::string_view name) {
  std::vector<std::string> names;
  for (const Setting& s : kSettings) names.push_back(s.name());
  for (const Setting& s : kSettings)
    if (s.section == "detection") names.emplace_back(s.key);
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view near = near_name(name, views);
  return fmt::format("unknown setting '{}'; {}{} lists all", name,
                     near.empty() ? "" : fmt::format("the nearest is '{}', and ", near),
                     command_hint("vramtrack config show"));
}

}  // namespace

std::string expected_value(const Setting& s) {
  if (s.max > 0) return fmt::format("a number from {} to {} ({})", s.min, s.max, s.unit);
  if (std::holds_alternative<bool>(s.get(Config{}))) return "true or false";
  if (std::holds_alternative<std::string>(s.get(Config{}))) return fmt::format("a string in quotes ({})", s.unit);
  return fmt::format("a list of strings ({})", s.unit);
}

namespace {

/// Checks the range and the syntax of one value.
Status check_value(const Setting& s, const SettingValue& value) {
  double number = 0;
  if (const auto* d = std::get_if<double>(&value))
    number = *d;
  else if (const auto* i = std::get_if<std::int64_t>(&value))
    number = static_cast<double>(*i);
  if (s.max > 0 && !(std::isfinite(number) && number >= s.min && number <= s.max))
    return fail(fmt::format("{} = {} is out of range; expected {}", s.name(), toml_text(value), expected_value(s)));
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  if (list == nullptr || s.unit != "regular expressions") return {};
  for (const std::string& pattern : *list)
    if (const auto compiled = Regex::compile(pattern); !compiled)
      return fail(
          fmt::format("{}: {}; escape special characters with a backslash", s.name(), compiled.error().message));
  return {};
}

}  // namespace

std::span<const Setting> settings() {
  return kSettings;
}

std::vector<std::string> settings_for_restart(const Config& running, const Config& next) {
  std::vector<std::string> names;
  for (const Setting& s : kSettings)
    if (s.reload == Reload::restart && s.get(running) != s.get(next)) names.push_back(s.name());
  return names;
}

const Setting* find_setting(std::string_view name) {
  const std::string wanted = with_dashes(name);
  for (const Setting& s : kSettings)
    if (s.name() == wanted || (s.section == "detection" && s.key == wanted)) return &s;
  return nullptr;
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = 0;
  name = name.substr(0, kMostOfAName);
  for (const std::string_view candidate : known) {
    const std::size_t distance = distance_to(name, candidate);
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

namespace {

std::string_view without_dashes(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

/// The known names that may have been meant, the nearest first; at most three.
std::vector<std::string_view> near_names(std::string_view name, std::span<const std::string_view> known) {
  // Short names that differ in more than every third letter resemble each other only by chance.
  constexpr std::size_t kLettersAnError = 3;
  // An error rarely hits the first letter, and changing one letter of a short name makes another word: stop is not top.
  constexpr std::size_t kMostOfAShortName = 4;
  constexpr std::size_t kMost = 3;
  name = name.substr(0, kMostOfAName);
  const std::string_view bare = without_dashes(name);
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (const std::string_view candidate : known) {
    const std::string_view its = without_dashes(candidate);
    if (bare.size() <= kMostOfAShortName && bare.substr(0, 1) != its.substr(0, 1)) continue;
    const std::size_t distance = distance_to(name, candidate);
    if (distance * kLettersAnError <= std::max(bare.size(), its.size()))
      near.emplace_back(distance, candidate);
    else if (!bare.empty() && its.starts_with(bare))
      near.emplace_back(kMostOfAName + distance, candidate);  // the beginning of a name: ranked after a typing error
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> out;
  for (const auto& [distance, candidate] : near)
    // Besides the nearest, only names that are as near: a name with one mistake hides one with two.
    if (out.size() < kMost && (distance == near.front().first || near.front().first >= kMostOfAName))
      out.push_back(candidate);
  return out;
}

}  // namespace

std::string_view near_name(std::string_view name, std::span<const std::string_view> known) {
  const auto near = near_names(name, known);
  return near.empty() ? std::string_view() : near.front();
}

std::string near_words(std::string_view name, std::span<const std::string_view> known) {
  const auto near = near_names(name, known);
  if (near.empty()) return fmt::format("choose one of {}", fmt::join(known, ", "));
  if (near.size() == 1) return fmt::format("the nearest is '{}'", near.front());
  return fmt::format("the nearest are '{}'", fmt::join(near, "', '"));
}

LayeredConfig::LayeredConfig() : origins_(kSettings.size(), "default") {}

const std::string& LayeredConfig::origin(const Setting& setting) const {
  return origins_[static_cast<std::size_t>(&setting - kSettings.data())];
}

Status LayeredConfig::apply(const Setting& setting, SettingValue value, std::string origin) {
  const auto kind = setting.get(config_).index();
  if (const auto* i = std::get_if<std::int64_t>(&value); i != nullptr && kind == SettingValue{0.0}.index())
    value = static_cast<double>(*i);
  if (value.index() != kind)
    return fail(fmt::format("{} = {} has the wrong type; expected {}", setting.name(), toml_text(value),
                            expected_value(setting)));
  if (Status ok = check_value(setting, value); !ok) return ok;
  setting.set(config_, value);
  origins_[static_cast<std::size_t>(&setting - kSettings.data())] = std::move(origin);
  return {};
}

std::string LayeredConfig::ignored_variable(std::string_view name) {
  // Variables that vramtrack sets for programs it starts, and that its builds and tests use; '_' ends a prefix.
  constexpr std::array<std::string_view, 7> kOthers = {"VRAMTRACK_MARK_", "VRAMTRACK_PROBE_", "VRAMTRACK_TEST_",
                                                       "VRAMTRACK_FAKE_", "VRAMTRACK_TRACES", "VRAMTRACK_UPDATE_GOLDEN",
                                                       "VRAMTRACK_SETUP"};
  if (!name.starts_with(kVariablePrefix) || variable_setting(name)) return {};
  for (const std::string_view other : kOthers)
    if (name == other || (other.back() == '_' && name.starts_with(other))) return {};
  // The key alone, as it may be written on the command line, counts as near as the whole name.
  std::vector<std::string> spellings;
  for (const Setting& s : kSettings) {
    spellings.push_back(s.name());
    spellings.emplace_back(s.key);
  }
  const std::vector<std::string_view> known(spellings.begin(), spellings.end());
  const std::string wanted = with_dashes(name.substr(kVariablePrefix.size()));
  const std::string ignored = fmt::format("environment variable {} is not a setting and is ignored; ", name);
  const std::string_view near = near_name(wanted, known);
  if (near.empty()) return ignored + command_hint("vramtrack config show") + " lists the settings";
  std::string variable;
  for (const Setting& s : kSettings)
    if (variable.empty() && (near == s.key || near == s.name())) variable = s.name();
  for (char& c : variable)
    c = c == '.' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format("{}the nearest is {}{}", ignored, kVariablePrefix, variable);
}

Status LayeredConfig::apply_variable(std::string_view name, std::string_view text) {
  if (const auto setting = variable_setting(name))
    return apply_assignment(*setting + '=' + std::string(text), name).map_error([&](const Error& e) {
      return e.during("environment variable " + std::string(name));
    });
  return {};
}

Status LayeredConfig::check() const {
  if (config_.severity.critical_hours > config_.severity.warning_hours)
    return fail(fmt::format(
        "severity.critical-hours ({}, from {}) is greater than severity.warning-hours ({}, from {}); a leak becomes a "
        "warning before it becomes critical: lower the first or raise the second",
        config_.severity.critical_hours, origin(*find_setting("severity.critical-hours")),
        config_.severity.warning_hours, origin(*find_setting("severity.warning-hours"))));
  const std::string& least = config_.notify.min_severity;
  if (least != "watch" && least != "warning" && least != "critical")
    return fail(fmt::format("notify.min-severity = \"{}\" (from {}) is unknown; expected watch, warning or critical",
                            least, origin(*find_setting("notify.min-severity"))));
  return {};
}

std::vector<std::string_view> setting_sections() {
  std::vector<std::string_view> sections;
  for (const Setting& s : kSettings)
    if (sections.empty() || sections.back() != s.section) sections.push_back(s.section);
  return sections;
}

Status LayeredConfig::apply_assignment(std::string_view assignment, std::string_view origin) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return fail(
        fmt::format("'{}' is not section.key=value; write, for example, detection.min-r-squared=0.8", assignment));
  const std::string_view name = assignment.substr(0, equals);
  const std::string_view text = assignment.substr(equals + 1);
  const Setting* setting = find_setting(name);
  if (setting == nullptr) return fail(unknown_setting(name));
  auto value = parse_setting(*setting, text);
  if (!value) return fail(value.error());
  return apply(*setting, std::move(*value), std::string(origin));
}

}  // namespace vramtrack

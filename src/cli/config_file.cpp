#include "cli/config_file.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "act/policy.hpp"
#include "core/regular_file.hpp"
#include "detect/detector.hpp"
#include "source/source.hpp"
#include "store/store.hpp"

extern char** environ;

namespace vramtrack::cli {
namespace {

std::string absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value == '/' ? value : "";
}

std::string home() {
  if (std::string from_variable = absolute_variable("HOME"); !from_variable.empty()) return from_variable;
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "";
}

/// Four times the size of a file with every setting and its explanation.
constexpr std::size_t kMostConfigBytes = 256 * 1024;

Status apply_environment(LayeredConfig& layers) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const auto equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    if (Status ok = layers.apply_variable(variable.substr(0, equals), variable.substr(equals + 1)); !ok) return ok;
  }
  return {};
}

Status apply_request(LayeredConfig& layers, const ConfigRequest& request) {
  for (const std::string& assignment : request.assignments)
    if (Status ok = layers.apply_assignment(assignment, "--set"); !ok) return fail(ok.error().during("--set"));
  for (const ConfigRequest::Override& o : request.overrides) {
    const std::string option(o.option);
    if (Status ok = layers.apply(*find_setting(o.setting), o.value, option); !ok)
      return fail(ok.error().during(option));
  }
  return {};
}

/// Checks the names that only the registries know.
Status check_names(const LayeredConfig& layers) {
  const Config& c = layers.config();
  std::vector<std::string_view> names;
  for (const DetectorInfo* info : detectors()) names.push_back(info->name);
  if (find_detector(c.detection.detector) == nullptr)
    return fail(fmt::format("{}: unknown detector '{}'; {}", layers.origin(*find_setting("detection.detector")),
                            c.detection.detector, near_words(c.detection.detector, names)));
  names.clear();
  for (const SourceInfo* info : live_sources()) names.push_back(info->name);
  for (const std::string& name : c.sources.enabled)
    if (std::find(names.begin(), names.end(), name) == names.end())
      return fail(fmt::format("{}: unknown source '{}'; {}", layers.origin(*find_setting("sources.enabled")), name,
                              near_words(name, names)));
  // A mistake in a policy must be reported now, not when the policy is needed.
  if (const auto policies = act::parse_policies(c.policies.toml, c.policies.name); !policies)
    return fail(policies.error());
  return {};
}

}  // namespace

std::string config_path(const ConfigRequest& request) {
  if (request.file) return *request.file;
  std::string folder = absolute_variable("XDG_CONFIG_HOME");
  if (folder.empty()) {
    folder = home();
    if (folder.empty()) return {};
    folder += "/.config";
  }
  return folder + "/vramtrack/config.toml";
}

Result<LayeredConfig> load_config(const ConfigRequest& request) {
  const auto reading = [](const Error& e) { return fail(e.during("cannot read the configuration")); };
  LayeredConfig layers;
  if (const std::string path = config_path(request); !path.empty()) {
    const auto text = read_regular_file(path, kMostConfigBytes, Links::of_owner);
    if (!text) return reading(text.error());
    if (!*text && request.file)
      return reading({path + ": no such file; 'vramtrack config init --config " + path + "' writes one"});
    if (*text)
      if (Status ok = layers.apply_file(**text, path); !ok) return reading(ok.error());
  }
  if (Status ok = apply_environment(layers); !ok) return reading(ok.error());
  if (Status ok = apply_request(layers, request); !ok) return fail(ok.error());
  if (Status ok = layers.check(); !ok) return reading(ok.error());
  if (Status ok = check_names(layers); !ok) return reading(ok.error());
  return layers;
}

std::vector<std::string> ignored_variables() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    std::string text = LayeredConfig::ignored_variable(variable.substr(0, variable.find('=')));
    if (!text.empty()) out.push_back(std::move(text));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace vramtrack::cli

#include "cli/config_file.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "act/policy.hpp"
#include "core/command.hpp"
#include "core/file_way.hpp"
#include "core/regular_file.hpp"
#include "detect/detector.hpp"
#include "host/privilege.hpp"
#include "source/source.hpp"
#include "store/store.hpp"

extern char** environ;

namespace vramtrack::cli {
namespace {

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

/// The action in the file that would run with this process's rights; empty if there is none.
std::string_view named_deed(const Config& of_file) {
  if (!of_file.policies.toml.empty()) return "has policies";
  if (!of_file.notify.exec.empty()) return "names the program of notify.exec";
  if (!of_file.sources.nvml_library.empty()) return "names the library of sources.nvml-library";
  return {};
}

/// If this process has more rights than a user, only root and its own user may decide what is done with them.
Status check_writers(const Config& of_file, const RegularFile& file) {
  const std::string_view deed = named_deed(of_file);
  if (deed.empty() || file.writer().empty()) return {};
  return fail(fmt::format("the file {}, and another user could change it: {}", deed, file.writer()));
}

/// The programs of steps and channels are checked again when they are run.
Status check_programs(const Config& config, const act::Policies& policies) {
  std::vector<std::vector<std::string>> commands;
  if (!config.notify.exec.empty()) commands.push_back(config.notify.exec);
  for (const act::Policy& policy : policies.rules)
    for (const act::Step& step : policy.steps)
      if (step.arguments.has("program")) commands.push_back(step.arguments.words("program"));
  for (const std::vector<std::string>& command : commands)
    if (const auto trusted = trusted_command(command); !trusted) return fail(trusted.error());
  return {};
}

/// Checks the names that only the registries have.
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
  const auto policies = act::parse_policies(c.policies.toml, c.policies.name);
  if (!policies) return fail(policies.error());
  return check_programs(c, *policies);
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
    const auto file = RegularFile::open(path, Links::of_owner,
                                        is_privileged() ? FileWay::Writers::wanted : FileWay::Writers::ignored);
    if (!file) return reading(file.error());
    if (!*file && request.file)
      return reading(
          {path + ": no such file; " + command_hint("vramtrack config init --config " + path) + " writes one"});
    if (*file) {
      const auto text = (*file)->read(kMostConfigBytes);
      if (!text) return reading(text.error());
      if (Status ok = layers.apply_file(*text, path); !ok) return reading(ok.error());
      if (Status ours = check_writers(layers.config(), **file); !ours) return reading(ours.error());
    }
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

#include "source/sim/find_scenario.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "core/settings.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack {

Result<sim::Scenario> find_scenario(const std::string& name) {
  if (const sim::BuiltinScenario* builtin = sim::find_builtin_scenario(name))
    return sim::parse_scenario(builtin->toml, name);
  std::error_code ec;
  if (std::filesystem::exists(name, ec)) return sim::load_scenario(name);
  std::vector<std::string_view> names;
  for (const sim::BuiltinScenario& builtin : sim::builtin_scenarios()) names.push_back(builtin.name);
  const std::string_view near = near_name(name, names);
  return fail(fmt::format("there is no built-in scenario and no file '{}'; {}'vramtrack simulate --list' shows all",
                          name, near.empty() ? "" : fmt::format("the nearest is '{}', and ", near)));
}

}  // namespace vramtrack

// Options shared by several commands, each declared in one place. Those that are settings go into the ConfigRequest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/arguments.hpp"
#include "cli/config_file.hpp"

namespace vramtrack::cli {

/// --config and --set, for every command that reads the configuration.
void add_config(Arguments& arguments, ConfigRequest& into);
/// --detector
void add_detector(Arguments& arguments, ConfigRequest& into);
/// --lead-time, for commands that raise alerts
void add_lead_time(Arguments& arguments, ConfigRequest& into);
/// --interval, for a live watch
void add_interval(Arguments& arguments, ConfigRequest& into);
/// --every
void add_every(Arguments& arguments, ConfigRequest& into, std::string help);
void add_no_record(Arguments& arguments, ConfigRequest& into, std::string help);
/// --telemetry
void add_telemetry(Arguments& arguments, ConfigRequest& into);
/// --no-experience
void add_no_experience(Arguments& arguments, ConfigRequest& into);
/// --source
void add_sources(Arguments& arguments, ConfigRequest& into);
void add_or_simulate(Arguments& arguments, bool& into);
/// --json, for JSON lines
void add_json(Arguments& arguments, bool& into);
/// --scenario
void add_scenario(Arguments& arguments, std::string& into, std::string help);
/// --seed
void add_seed(Arguments& arguments, std::optional<std::uint64_t>& into, std::string help);
/// --speed; 0: as fast as possible
void add_speed(Arguments& arguments, double& into, std::string help);
extern const char* const kSpeedHelp;

/// The built-in scenarios.
std::vector<std::string> scenario_names();

}  // namespace vramtrack::cli

// Options that the verbs of `vramtrack fleet` share: the server, how to read it, and which part of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/config_file.hpp"
#include "fleet/exporters.hpp"
#include "fleet/plan.hpp"
#include "fleet/reader.hpp"

namespace vramtrack::cli {

struct FleetOptions {
  ConfigRequest config;
  std::vector<std::string> urls;
  std::vector<std::string> tenants;
  std::string exporters_file;
  std::string read_by;
  std::string shard;
  double step_s = 30;
  std::vector<std::string> only;
  std::vector<std::string> headers;
  std::string bearer_token_file;
  std::string basic_auth_file;
  std::string ca_file;
  std::uint64_t threads = 0;
};

/// Declares the options; `options` must outlive the parsing.
void add_fleet_options(Arguments& arguments, FleetOptions& options);

/// The servers, once per tenant.
Result<std::vector<fleet::ServerAddress>> servers_of(const FleetOptions& options);
/// Reads each server by the protocol that the user chose, else by the best one that the server supports.
Result<fleet::Reader> reader_of(const FleetOptions& options);
Result<fleet::Mapping> mapping_of(const FleetOptions& options);
/// The shard and the labels, but not the time.
Result<fleet::PlanOptions> plan_of(const FleetOptions& options);
unsigned threads_of(const FleetOptions& options);

}  // namespace vramtrack::cli

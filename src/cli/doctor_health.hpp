// doctor --health: whether the GPUs of this machine are fit for work.
#pragma once

#include <string>

#include "cli/arguments.hpp"
#include "cli/config_file.hpp"
#include "cli/console.hpp"
#include "cli/moment.hpp"
#include "health/gather.hpp"

namespace vramtrack::cli {

struct HealthOptions {
  bool is_asked_for = false;
  HealthRequest request;
  PeriodArguments period;
  std::string format;   ///< empty: not given
  std::string fail_on;  ///< likewise
  std::string first;    ///< the first given option that is valid only with --health; empty: none was given
};

/// Declares --health and the options that go with it. `into` must outlive the parsing.
void add_health(Arguments& arguments, HealthOptions& into);

/// Prints the checkup and returns its exit code: 0 healthy, 1 unhealthy, 2 unknown.
int doctor_health(const HealthOptions& options, const ConfigRequest& config, Console& console);

}  // namespace vramtrack::cli

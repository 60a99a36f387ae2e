// The implementation of `vramtrack simulate`, which `watch --or-simulate` also uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/commands.hpp"

namespace vramtrack::cli {

struct SimulateOptions {
  ConfigRequest config;
  std::string scenario;  ///< a built-in name or a file; empty: the first built-in
  bool list = false;
  double speed = 0;                  ///< 0: as fast as possible
  std::optional<double> within_s;    ///< instead of speed
  bool once = false;                 ///< one sample, shown as a table or as lines, without a summary
  std::optional<double> duration_s;  ///< real time after which it ends
  std::optional<std::uint64_t> seed;
  std::string csv;          ///< empty: none
  std::string process_csv;  ///< empty: none
  bool notify = false;
  bool json = false;
  bool explain = false;
};

/// Runs the scenario and returns the exit code.
int simulate(const SimulateOptions& options, const LayeredConfig& layers, Console& console);

}  // namespace vramtrack::cli

// The commands: one file each. Each prints its result and returns the exit code.
#pragma once

#include "cli/console.hpp"
#include "cli/options.hpp"
#include "core/settings.hpp"

namespace vramtrack::cli {

int watch(const Options& options, const LayeredConfig& layers, Console& console);
int agent(const Options& options, const LayeredConfig& layers, Console& console);
int top(const Options& options, const LayeredConfig& layers, Console& console);
int replay(const Options& options, const LayeredConfig& layers, Console& console);
int analyze(const Options& options, const LayeredConfig& layers, Console& console);
int report(const Options& options, const LayeredConfig& layers, Console& console);
int simulate(const Options& options, const LayeredConfig& layers, Console& console);
/// Takes no configuration: nothing in it concerns a snapshot.
int snapshot(const Options& options, Console& console);
int test(const Options& options, const LayeredConfig& layers, Console& console);
/// Takes no loaded configuration: it reports what is wrong with it.
int doctor(const Options& options, Console& console);
int config_show(const Options& options, const LayeredConfig& layers, Console& console);
int config_path_command(const Options& options, Console& console);
int config_init(const Options& options, Console& console);

}  // namespace vramtrack::cli

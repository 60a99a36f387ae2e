// The same program again: other runs of the program of a trace, and its siblings. They have its parameters; level,
// pace, length and chance differ a little.
#pragma once

#include <cstddef>

#include "past.hpp"
#include "source/sim/scenario.hpp"
#include "trace.hpp"

namespace vramtrack::accuracy {

/// The run of `trace` that is judged beside others: drawn as those are, so that it is not a special one among them.
/// REQUIRES: a generated trace of one device.
Trace this_run(const Trace& trace);

/// The `number`-th of the runs before it.
Trace earlier_run(const Trace& trace, Earlier how, std::size_t number);

/// `run`, of a command that changed in an argument that matters.
Trace with_new_command(const Trace& run);

/// `run` with `siblings` of its program, each on its own device; they leak as it does if `alike`.
Trace with_siblings(const Trace& run, std::size_t siblings, bool alike);

/// Without what leaks: shapes that only leak are gone (linear, accelerating, staircase, requests), of the others what
/// they leave behind. Pure.
sim::Scenario without_leak(sim::Scenario scenario);

}  // namespace vramtrack::accuracy

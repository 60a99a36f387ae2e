// Functions that a CUDA driver newer than the probe exports: programs find them under the probe, too.
#pragma once

#include <string>
#include <vector>

#include "live/sources.hpp"
#include "run/probe_library.hpp"

namespace vramtrack::run {

/// `library` itself where it exports each function of its driver, as it does for drivers up to the one that
/// src/probe/cuda/symbols.txt lists. Else a copy of it in the first of `places` that will do (library_place.hpp), in
/// which spare functions have the names that it lacks; each jumps to the driver's function. What cannot be had is told
/// to `warn`, and `library` is used as far as it goes: such a function is then found by cuGetProcAddress only. Reads
/// both libraries: a tenth of a second for a driver of 90 MB.
ProbeLibrary with_names_of_driver(const ProbeLibrary& library, const std::vector<std::string>& places,
                                  const Warn& warn);

}  // namespace vramtrack::run

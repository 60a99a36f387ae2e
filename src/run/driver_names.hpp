// Makes functions that only a CUDA driver newer than the probe exports available to programs under the probe, too.
#pragma once

#include <string>
#include <vector>

#include "live/sources.hpp"
#include "run/probe_library.hpp"

namespace vramtrack::run {

/// `library` itself if it exports each function of its driver, as it does for drivers up to the one listed in
/// src/probe/cuda/symbols.txt. Otherwise a copy of it in the first suitable one of `places` (library_folder.hpp), in
/// which spare functions get the missing names; each jumps to the driver's function. Reports names that cannot be added
/// to `warn`, and still uses the library: such a function is then found only by cuGetProcAddress. Reads both libraries:
/// a tenth of a second for a driver of 90 MB.
ProbeLibrary with_names_of_driver(const ProbeLibrary& library, const std::vector<std::string>& directories,
                                  const Warn& warn);

}  // namespace vramtrack::run

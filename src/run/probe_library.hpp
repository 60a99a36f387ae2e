// Finds the probe's libraries, and defines how they are loaded into an unmodified program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "host/child_program.hpp"
#include "run/collector.hpp"

namespace vramtrack::run {

struct ProbeLibrary {
  std::string path;         ///< the library to preload
  std::string cuda_driver;  ///< absolute path of the real libcuda.so.1; empty: none on this machine
};

/// The variant for this machine: with an NVIDIA driver, the variant that replaces it. Searched next to the binary (a
/// build's `probe`, an installation's `../lib/vramtrack`) or in `folder`, if that is not empty. An Error lists the
/// locations.
Result<ProbeLibrary> find_probe(const std::string& folder);

/// The same library under a path that LD_PRELOAD can hold. If its own has a blank, a colon or a dollar sign, it is a
/// link in the first suitable one of `directories` (library_folder.hpp). An Error if none is suitable.
Result<ProbeLibrary> preloadable(ProbeLibrary library, const std::vector<std::string>& directories);

/// The environment in which a program loads `library` and its probes create their rings in `ring_folder`, with limits
/// that apply from the first allocation on. `exact`: frameworks allocate each tensor from the driver (slow).
std::vector<Variable> probe_environment(const ProbeLibrary& library, const std::string& ring_folder,
                                        const Limits& limits, bool exact);

/// Writes the Python source of the probe's searches for what keeps memory (src/probe/kept.hpp);
/// cmake/embed_python.cmake generates it.
std::string_view kept_script();

}  // namespace vramtrack::run

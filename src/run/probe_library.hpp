// Where the probe's libraries are, and how they are loaded into a program that is not changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "host/child_program.hpp"
#include "run/collector.hpp"

namespace vramtrack::run {

struct ProbeLibrary {
  std::string path;         ///< to be preloaded
  std::string cuda_driver;  ///< the real libcuda.so.1, by absolute path; empty: there is none here
};

/// The variant for this machine: where there is an NVIDIA driver, the one that stands in its place. Searched beside
/// the binary (a build's `probe`, an installation's `../lib/vramtrack`) or in `folder`, where that is not empty. An
/// Error names the places.
Result<ProbeLibrary> find_probe(const std::string& folder);

/// The same library under a path that LD_PRELOAD can hold: where its own has a blank, a colon or a dollar sign, by a
/// link in the first of `places` that will do (library_place.hpp). An Error: none will.
Result<ProbeLibrary> preloadable(ProbeLibrary library, const std::vector<std::string>& places);

/// The environment in which a program loads `library` and its probes make their rings in `ring_folder`, with limits
/// that hold from the first allocation on. `exact`: frameworks allocate each tensor at the driver (slow).
std::vector<Variable> probe_environment(const ProbeLibrary& library, const std::string& ring_folder,
                                        const Limits& limits, bool exact);

/// The Python source of the probe's looks at what keeps memory (src/probe/kept.hpp); cmake/embed_python.cmake writes
/// it.
std::string_view kept_script();

}  // namespace vramtrack::run

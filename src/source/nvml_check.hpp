// Checks whether NVIDIA's library works at all and which GPUs do not answer, which a failed watch cannot report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"

namespace vramtrack {

struct NvmlCheck {
  /// A GPU that the driver counts but whose UUID it does not report.
  struct Silent {
    unsigned index = 0;
    bool is_lost = false;  ///< the driver reports that it is lost or needs a reset
    std::string reason;    ///< "GPU is lost (15)"
  };
  bool is_found = false;        ///< the library could be loaded
  std::string path;             ///< the file that was loaded
  std::string library_version;  ///< "550.54.14", from the file's name; empty if the name has none
  bool works = false;           ///< it could be initialised
  bool is_mismatched = false;   ///< the driver's kernel module and the library have different versions
  std::string reason;           ///< why it does not work; empty if it does
  std::vector<Silent> silent;
};

/// Loads the library that `config` names, initialises it, asks each GPU for its UUID, and closes it again. Blocks while
/// the driver works: up to seconds if nothing else uses it. May be called from any thread.
NvmlCheck check_nvml(const SourcesConfig& config);

/// "550.54.14" for "/usr/lib/libnvidia-ml.so.550.54.14"; empty if `path` does not end in a version. Pure.
std::string version_of_library(const std::string& path);

}  // namespace vramtrack

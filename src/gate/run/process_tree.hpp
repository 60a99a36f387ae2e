// The processes below one process and the memory they hold on the GPUs, according to the live sources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/result.hpp"
#include "live/clock.hpp"
#include "live/sources.hpp"

namespace vramtrack::gate {

/// Reads the sources only when asked. Not thread-safe.
class ProcessTreeMemory {
 public:
  explicit ProcessTreeMemory(const SourcesConfig& config);

  /// Bytes that the tree below `root` holds on all GPUs; 0 if it holds none. An Error if no source on this machine
  /// lists processes.
  Result<double> used_bytes(std::uint32_t root);

 private:
  SourcesConfig config_;
  const Clock clock_ = machine_clock();
  Catalog catalog_;
  std::string reasons_;
  std::vector<LiveSource> sources_;
  Batch batch_;
};

}  // namespace vramtrack::gate

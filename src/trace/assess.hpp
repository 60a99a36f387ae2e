// Assesses the reserved memory of a single snapshot (in use, cached, fragmented or waiting), and advises what to do.
#pragma once

#include <optional>
#include <string>

#include "trace/diff.hpp"
#include "trace/snapshot.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace {

struct Assessment {
  Condition condition = Condition::steady;  ///< steady, cache, fragmentation or pending: a leak needs two snapshots
  std::string because;
  std::string next_step;  ///< empty: nothing to do
};

/// Decides by the largest part of reserved memory that was not requested, if it is a tenth of it and 64 MiB. Pure.
Assessment assess(const Usage& usage, const std::optional<AllocatorSettings>& settings);

/// The advice against fragmentation, given the allocator's settings.
std::string fragmentation_advice(const std::optional<AllocatorSettings>& settings);

}  // namespace vramtrack::trace

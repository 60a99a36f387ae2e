// What one snapshot alone shows about its reserved memory: in use, cached, fragmented or waiting; and what to do.
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

/// By the largest part of what is reserved but was not requested, if that is a tenth of it and 64 MiB. Pure.
Assessment assess(const Usage& usage, const std::optional<AllocatorSettings>& settings);

/// What to do against fragmentation, given how the allocator is configured.
std::string fragmentation_advice(const std::optional<AllocatorSettings>& settings);

}  // namespace vramtrack::trace

// What one snapshot's reserved memory says by itself: in use, cached, fragmented or waiting; and what to do about it.
#pragma once

#include <optional>
#include <string>

#include "trace/diff.hpp"
#include "trace/snapshot.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace {

struct Assessment {
  Condition condition = Condition::steady;  ///< steady, cache, fragmentation or pending: a leak takes two snapshots
  std::string because;
  std::string next_step;  ///< empty: nothing to do
};

/// By the largest part of what is reserved and was not asked for, where that is a tenth of it and 64 MiB. Pure.
Assessment assess(const Usage& usage, const std::optional<AllocatorSettings>& settings);

/// What to do against fragmentation, by how the allocator is configured already.
std::string fragmentation_advice(const std::optional<AllocatorSettings>& settings);

}  // namespace vramtrack::trace

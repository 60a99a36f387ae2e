// What a framework says that it handed out and holds in reserve, as a series: at most one record a device in 10 ms,
// since one with each allocation would fill the ring twice as fast.
#pragma once

#include <cstdint>

#include "probe/wire.hpp"

namespace vramtrack::probe {

/// PyTorch's blocks come with totals; a changed reserve is told at once.
void tell_torch_totals(int device, std::uint64_t allocated_bytes, std::uint64_t reserved_bytes);
/// Whether those of a driver's pool are due: PyTorch, where it tells of the device, knows better. `at_once`: the
/// reserve has changed, so that they are due however soon after the last.
bool pool_totals_are_due(int device, bool at_once = false);

}  // namespace vramtrack::probe

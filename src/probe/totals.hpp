// A framework's allocated and reserved memory, as a series: at most one record per device every 10 ms, because one per
// allocation would fill the ring twice as fast.
#pragma once

#include <cstdint>

#include "probe/wire.hpp"

namespace vramtrack::probe {

/// Records the totals reported with PyTorch's blocks; a changed reserve is recorded at once.
void record_torch_totals(int device, std::uint64_t allocated_bytes, std::uint64_t reserved_bytes);
/// Whether the totals of a driver's pool are due; if PyTorch reports the device, its totals take precedence. `at_once`:
/// the reserve has changed, so they are due however recent the last ones are.
bool pool_totals_are_due(int device, bool at_once = false);

}  // namespace vramtrack::probe

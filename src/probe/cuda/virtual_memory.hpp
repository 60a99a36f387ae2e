// Virtual memory management, as used by PyTorch's expandable segments, NCCL and XLA.
#pragma once

namespace vramtrack::probe::cuda {

/// Call in a child after a fork.
void forget_virtual_memory();

}  // namespace vramtrack::probe::cuda

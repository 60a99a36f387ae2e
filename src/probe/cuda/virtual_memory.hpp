// Virtual memory management, as PyTorch's expandable segments, NCCL and XLA use it.
#pragma once

namespace vramtrack::probe::cuda {

/// Call in a child after a fork.
void forget_virtual_memory();

}  // namespace vramtrack::probe::cuda

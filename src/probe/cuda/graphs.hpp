// Memory that CUDA graphs allocate when they run. The driver reports how much a device reserves for them, but not for
// which graph: it is one holding per device, with the stack of the launch that changed it.
#pragma once

namespace vramtrack::probe::cuda {

/// A graph got a node that allocates on the device: from now on, launches check the memory that graphs reserve there.
void graph_allocates(int device);
/// In a child after a fork.
void forget_graphs();

}  // namespace vramtrack::probe::cuda

// Memory that CUDA graphs allocate when they run. The driver tells how much a device reserves for them, not which
// graph: it is one holding a device, and its stack is that of the launch that changed it.
#pragma once

namespace vramtrack::probe::cuda {

/// A graph got a node that allocates on the device: from now on launches look at what graphs reserve there.
void graph_allocates(int device);
/// In a child after a fork.
void forget_graphs();

}  // namespace vramtrack::probe::cuda

// Memory that CUDA graphs allocate when they run. The driver reports how much a device reserves for them, but not for
// which graph, so it is one holding per device, with the stack of the launch that changed it.
#pragma once

namespace vramtrack::probe::cuda {

/// Call when a graph gets a node that allocates on the device. From then on, launches check its reserve for graphs.
void graph_allocates(int device);
/// Call in a child after a fork.
void forget_graphs();

}  // namespace vramtrack::probe::cuda

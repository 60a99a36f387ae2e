// The pools of stream-ordered memory.
#pragma once

namespace vramtrack::probe::cuda {

/// Call in a child after a fork.
void forget_pools();

}  // namespace vramtrack::probe::cuda

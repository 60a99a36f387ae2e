// Memory of another process or API that is mapped here.
#pragma once

namespace vramtrack::probe::cuda {

/// Call in a child after a fork.
void forget_imports();

}  // namespace vramtrack::probe::cuda

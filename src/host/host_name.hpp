// The name of this machine.
#pragma once

#include <string>

namespace vramtrack {

/// As gethostname() gives it; empty when it gives none.
std::string host_name();

}  // namespace vramtrack

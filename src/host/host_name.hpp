// The name of this machine.
#pragma once

#include <string>

namespace vramtrack {

/// As gethostname() returns it; empty if it returns none.
std::string host_name();

}  // namespace vramtrack

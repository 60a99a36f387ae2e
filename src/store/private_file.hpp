// The store's file is its owner's: it names the commands of all users of a machine.
#pragma once

#include <string>

#include "core/result.hpp"

namespace vramtrack {

/// Makes `path` where it is not there, and gives it mode 0600; with a `group`, that group and mode 0640. What SQLite
/// puts beside it gets the same mode and group from SQLite. Fails where `path` is a symbolic link or no regular file,
/// where there is no such group, or where the owner may not give it to that group.
Status make_private(const std::string& path, const std::string& group);

}  // namespace vramtrack

// The store's file belongs to its owner alone: it names the commands of all users of a machine.
#pragma once

#include <string>

#include "core/result.hpp"

namespace vramtrack {

/// Creates `path` if it does not exist, and gives it mode 0600; with a `group`, that group and mode 0640. Files that
/// SQLite puts next to it get the same mode and group from SQLite. Fails if `path` is a symbolic link or not a regular
/// file, if there is no such group, or if the owner may not give it to that group.
Status make_private(const std::string& path, const std::string& group);

}  // namespace vramtrack

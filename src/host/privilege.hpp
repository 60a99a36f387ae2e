// What this process may do beyond its user: the services run as a user of their own with two capabilities.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

/// Whether the maps and fdinfo of other users' processes can be read: by root, or with CAP_SYS_PTRACE.
bool may_read_others();

/// Whether this process may do more than a user may: as root, or with any capability.
bool is_privileged();

/// A command that a file names (a configuration, a policy), to be run instead of `argv`, which has a program: a name
/// without a slash is looked up in PATH, and is kept as it is if it is not found. An error if this process is
/// privileged and another user could change the program, or replace it (FileWay::writer), or a file that
/// an argument names: an interpreter runs that. Such a file is an argument itself, or an absolute path within one, as
/// in "--script=/opt/save.py" and in the text of "sh -c". Anything but a regular file is not checked.
Result<std::vector<std::string>> trusted_command(std::vector<std::string> argv);

/// The same check for a shared library that a setting names and this process is about to load: its code runs with
/// all rights of this process. A name without a slash is looked up by the loader, in the system's folders.
Status trusted_library(const std::string& path);

/// Withholds the ambient capabilities of this process from the programs that it starts. Call it before the first
/// thread starts: each thread has its own. The process itself keeps what it has.
void keep_capabilities();

}  // namespace vramtrack

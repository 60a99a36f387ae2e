// What this process may do beyond its user: the services run as a user of their own with two capabilities.
#pragma once

namespace vramtrack {

/// Whether the maps and fdinfo of other users' processes can be read: by root, or with CAP_SYS_PTRACE.
bool may_read_others();

/// Keeps the ambient capabilities of this process from the programs that it starts. Call it before the first thread:
/// what a thread has is its own. The process itself keeps what it has.
void keep_capabilities();

}  // namespace vramtrack

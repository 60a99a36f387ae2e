// Where a watch keeps what it knows about programs: in its store, under a hash of their identity.
#pragma once

#include <string>

#include "engine/engine.hpp"
#include "store/store.hpp"

namespace vramtrack {

/// The key of a program in a store: SHA-256 in 64 hexadecimal digits. A command may contain secrets.
std::string program_key(const ProgramIdentity& identity);

/// `store` must outlive the returned object.
ProgramMemory memory_in(Store& store);

}  // namespace vramtrack

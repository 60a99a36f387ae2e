// Whose a failure is, and what to do about it.
#pragma once

#include <string>

#include "explain/judge.hpp"

namespace vramtrack::explain {

/// Whose the failure is. Its cause is known.
std::string fault_of(const Failure& failure);
std::string next_step_of(const Failure& failure);
/// What would tell the cause that the message does not.
std::string would_tell_of(const Failure& failure);

}  // namespace vramtrack::explain

// The cause of one failure, by the figures of its message.
#pragma once

#include "explain/judge.hpp"

namespace vramtrack::explain {

/// Sets cause and because of `failure`. Pure.
void find_cause(Failure& failure);

/// "4.26 GiB", "871.0 MiB", "90 bytes"; "4.0 EiB" for sizes that no machine has.
std::string size_words(double bytes);
/// Whose the failure is, and what to do about it.
std::string fault_of(const Failure& failure);
std::string next_step_of(const Failure& failure);
/// What would tell the cause that the message does not.
std::string would_tell_of(const Failure& failure);

}  // namespace vramtrack::explain

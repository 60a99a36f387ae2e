// Who is responsible for a failure, and what to do about it.
#pragma once

#include <string>

#include "explain/explanation.hpp"

namespace vramtrack::explain {

/// The responsible party, as a sentence. REQUIRES a known cause.
std::string fault_of(const Failure& failure);
std::string next_step_of(const Failure& failure);
/// The evidence, missing in the message, that would show the cause.
std::string missing_evidence_for(const Failure& failure);

}  // namespace vramtrack::explain

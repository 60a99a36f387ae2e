// The arithmetic of a serving engine (vLLM): a share of the device is its budget; what the weights and activations
// leave of it is the key-value cache, which must hold the longest request.
#pragma once

#include <string>

#include "explain/cause.hpp"

namespace vramtrack::explain {

/// nullopt: the failure is not about the key-value cache.
Answer kv_cache_diagnosis(const Failure& failure);

/// The values to set for the engine's options, from its figures; empty: unknown.
std::string kv_cache_step(const Failure& failure);

}  // namespace vramtrack::explain

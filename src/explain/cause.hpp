// Determines the cause of one failure from the figures of its message.
#pragma once

#include <optional>
#include <string>

#include "core/units.hpp"
#include "explain/explanation.hpp"

namespace vramtrack::explain {

/// The answer of a rule.
struct Diagnosis {
  Cause cause = Cause::unknown;
  std::string because;
  std::string missing_evidence;  ///< as Failure::missing_evidence
};
/// nullopt: the rule does not apply.
using Answer = std::optional<Diagnosis>;

/// Sets cause and because of `failure`. Pure.
void find_cause(Failure& failure);

/// TensorFlow and JAX take most of the device on start. Then either an array is too large for the rest of theirs, or
/// others held the device before; the size of the request does not show which.
bool takes_device_at_start(const Wording& wording);

/// "4.26 GiB", "871.0 MiB", "90 bytes"; "1.94 PiB" and "4.0 EiB" for sizes that no machine has.
std::string size_words(double bytes);
/// More than any machine has: such a size is itself an error.
inline constexpr double kImpossibleBytes = 16 * kTiB;

}  // namespace vramtrack::explain

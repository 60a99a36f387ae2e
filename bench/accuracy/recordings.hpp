// Real recordings as labelled traces: as they are, and with leaks added to the healthy ones.
#pragma once

#include <string>
#include <vector>

#include "trace.hpp"

namespace vramtrack::accuracy {

/// Others' recordings, from a folder of their files (not part of this repository): all are taken as healthy. Series of
/// one job are in one split: the odd half of the serving containers is for tuning, the rest for testing. Of host-memory
/// files none is taken. Empty when there is no such folder. Throws std::runtime_error on a file that cannot be read.
std::vector<Trace> recordings_of_others(const std::string& folder, Split split);

/// This project's own recordings with their labels (tests/recordings): what the allocator reserved against its cap,
/// times stretched sixty-fold; odd waves are for tuning. Empty as long as there are none. Throws std::runtime_error on
/// one that cannot be read.
std::vector<Trace> own_recordings(const std::string& folder, Split split);

/// A leak added to each healthy trace that has room for one: onset at 20 to 45 % of its span, the end of memory within
/// it. Five forms: linear, accelerating, stairs, random stairs, rising sawtooth.
std::vector<Trace> with_leaks(const std::vector<Trace>& healthy, std::uint64_t seed);

}  // namespace vramtrack::accuracy

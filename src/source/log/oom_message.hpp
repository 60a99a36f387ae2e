// The messages with which programs report that a GPU ran out of memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vramtrack {

/// Whether `line` has such a message, according to the wordings of `explain` (explain/wordings.def). A line without
/// one costs a few dozen nanoseconds.
bool tells_out_of_memory(std::string_view line);

/// The reason, from the figures of the message: "1.12 GiB were requested while ...", "FRAGMENTATION: ..."; empty when
/// it gives none.
std::string why_out_of_memory(std::string_view line);

/// The index of the GPU that the message names ("GPU 0 has a total capacity of"), as the program counts its GPUs.
std::optional<int> gpu_of_message(std::string_view line);

}  // namespace vramtrack

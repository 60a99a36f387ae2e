// The messages by which programs say that the memory of a GPU ran out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vramtrack {

/// Whether `line` has such a message, by the wordings of `explain` (explain/wordings.def). A few dozen nanoseconds for
/// a line that has none.
bool tells_out_of_memory(std::string_view line);

/// Why, by the figures of the message: "1.12 GiB were requested while ...", "FRAGMENTATION: ..."; empty: it does not
/// say.
std::string why_out_of_memory(std::string_view line);

/// The index of the GPU that the message names ("GPU 0 has a total capacity of"), as the program counts its GPUs.
std::optional<int> gpu_of_message(std::string_view line);

}  // namespace vramtrack

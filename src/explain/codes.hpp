// Codes: the names and numbers by which interfaces report that memory, or a limit of it, ran out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "explain/words.hpp"

namespace vramtrack::explain {

/// What a code reports. The order is that of kinds without a table entry first.
enum class Shortage : std::uint8_t {
  memory,  ///< of the memory that the line names
  host,    ///< of the host's memory, according to the driver of a device
  piece,   ///< one object is larger than the device allows
};
/// A code of a line: [begin, end) of it.
struct Code {
  std::size_t begin = 0;
  std::size_t end = 0;
  Shortage shortage = Shortage::memory;
};

/// The name of a failed allocation as drivers, systems and languages use it, however its parts are joined:
/// CUDA_ERROR_OUT_OF_MEMORY, RayOutOfMemoryError, VK_ERROR_MEMORY_MAP_FAILED. `word` is in lower case. Other than a
/// counter: "alloc_failures".
bool is_code(std::string_view word);

/// The code at word `i`: a name, or a number of an interface that the line names, if it is called an error or returned
/// by a call: "CUDA error 2", "cl::Buffer: error `-61`", "vkAllocateMemory: -2". nullopt: none.
std::optional<Code> code_at(const std::vector<Word>& words, std::size_t i, std::string_view line);
/// The first one of `line`, in lower case, that reports more than a lack of memory; else the first one; else nullopt.
std::optional<Code> code_in(std::string_view line);

/// The name of a code in `line` that reports anything else, where the line has none of a lack of memory:
/// "cudaErrorNotSupported"; empty: none.
std::string_view other_code_in(std::string_view line);

}  // namespace vramtrack::explain

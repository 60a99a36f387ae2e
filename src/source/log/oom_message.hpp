// The messages by which programs say that the memory of a GPU ran out.
#pragma once

#include <optional>
#include <string_view>

namespace vramtrack {

/// Whether `line` is such a message of PyTorch, JAX, TensorFlow, CUDA, cuBLAS or HIP. A few dozen nanoseconds for a
/// line that is none.
bool tells_out_of_memory(std::string_view line);

/// The index of the GPU that the message names ("GPU 0 has a total capacity of"), as the program counts its GPUs.
std::optional<int> gpu_of_message(std::string_view line);

}  // namespace vramtrack

#include "source/log/oom_message.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "source/log/text.hpp"

namespace vramtrack {
namespace {

constexpr std::array<std::string_view, 14> kMessages = {
    "CUDA out of memory",             // PyTorch
    "HIP out of memory",              // PyTorch on ROCm
    "XPU out of memory",              // PyTorch on Intel
    "torch.OutOfMemoryError: ",       // PyTorch 2.5 and later
    "torch.cuda.OutOfMemoryError: ",  // PyTorch 1.13 to 2.4
    "CUDA error: out of memory",      // PyTorch, of calls other than its allocator's
    "HIP error: out of memory",
    "cudaErrorMemoryAllocation",          // the CUDA runtime
    "hipErrorOutOfMemory",                // the HIP runtime
    "CUDA_ERROR_OUT_OF_MEMORY",           // the CUDA driver, as TensorFlow and JAX quote it
    "CUBLAS_STATUS_ALLOC_FAILED",         // cuBLAS
    "RESOURCE_EXHAUSTED: Out of memory",  // JAX
    "RESOURCE_EXHAUSTED: failed to allocate: Out of memory",
    "Resource exhausted: Out of memory",
};

/// As std::string_view::find(), but a space is any white space: columns may have been set apart by tabs.
bool contains(std::string_view line, std::string_view words) {
  const auto same = [](char c, char word) { return c == word || (word == ' ' && c == '\t'); };
  return std::search(line.begin(), line.end(), words.begin(), words.end(), same) != line.end();
}

/// What every message has, so that most other lines are told at a glance.
bool may_be_message(std::string_view line) {
  constexpr std::string_view kMemory = "memory";
  constexpr std::string_view kBefore = "of ";
  for (std::size_t at = line.find(kMemory); at != std::string_view::npos; at = line.find(kMemory, at + 1))
    if (at >= kBefore.size() && line[at - 3] == 'o' && line[at - 2] == 'f') return true;
  for (const std::string_view mark : {"OfMemory", "OF_MEMORY", "MemoryAllocation", "ALLOC_FAILED"})
    if (line.find(mark) != std::string_view::npos) return true;
  return false;
}

}  // namespace

bool tells_out_of_memory(std::string_view line) {
  // "except torch.cuda.OutOfMemoryError:" in a traceback is not the message.
  line = logtext::trim(line);
  return may_be_message(line) && std::any_of(kMessages.begin(), kMessages.end(),
                                             [line](std::string_view words) { return contains(line, words); });
}

std::optional<int> gpu_of_message(std::string_view line) {
  constexpr std::string_view kGpu = "GPU ";
  for (std::size_t at = line.find(kGpu); at != std::string_view::npos; at = line.find(kGpu, at + 1)) {
    const std::string_view rest = line.substr(at + kGpu.size());
    int index = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
    if (error == std::errc{} && index >= 0) return index;
  }
  return std::nullopt;
}

}  // namespace vramtrack

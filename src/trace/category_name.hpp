// The categories of memory, by name: plain, so that a Snapshot can hold what the program reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vramtrack::trace {

enum class Category : std::uint8_t {
  weights,          ///< parameters and buffers
  gradients,        ///< of parameters, and those that flow through backward()
  optimizer_state,  ///< moments, momentum, master weights
  activations,      ///< what forward() computes and keeps for backward()
  kv_cache,         ///< keys and values of generation
  other_cache,
  workspaces,     ///< of cuBLAS, cuDNN and similar libraries
  communication,  ///< buffers of NCCL, buckets of gradients
  inputs,         ///< batches
  contexts,       ///< of the driver; this and the next three by the call, under `vramtrack run`
  code,           ///< modules and libraries of kernels
  graphs,         ///< CUDA graphs that are ready to run, and what they allocate
  managed,        ///< memory of host and device whose stacks show no other category
  unknown,
};
inline constexpr std::size_t kCategories = 14;

/// "optimizer_state": in JSON and in what programs report.
std::string_view category_name(Category category);
/// "optimizer state"
std::string_view category_words(Category category);
/// None: not one of them.
std::optional<Category> parse_category(std::string_view name);

}  // namespace vramtrack::trace

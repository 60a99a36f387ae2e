// The categories of memory and their names, without dependencies, so that a Snapshot can hold a program's reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vramtrack::trace {

enum class Category : std::uint8_t {
  weights,          ///< parameters and buffers
  gradients,        ///< gradients of parameters, and those that flow through backward()
  optimizer_state,  ///< moments, momentum, master weights
  activations,      ///< what forward() computes and keeps for backward()
  kv_cache,         ///< keys and values for generation
  other_cache,
  workspaces,     ///< of cuBLAS, cuDNN and similar libraries
  communication,  ///< buffers of NCCL, buckets of gradients
  inputs,         ///< batches
  contexts,       ///< the driver's; this and the next three by the call, under `vramtrack run`
  code,           ///< modules and libraries of kernels
  graphs,         ///< CUDA graphs that are ready to run, and their allocations
  managed,        ///< host and device memory with stacks that show no other category
  unknown,
};
inline constexpr std::size_t kCategories = 14;

/// The name in JSON and in programs' reports, such as "optimizer_state".
std::string_view category_name(Category category);
/// The name as words: "optimizer state".
std::string_view category_words(Category category);
/// None if it is not a category.
std::optional<Category> parse_category(std::string_view name);

}  // namespace vramtrack::trace

// A model in Hugging Face's layout: config.json, and the headers of safetensors files
// (https://github.com/huggingface/safetensors#format).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "sizing/model.hpp"

namespace vramtrack::sizing {

/// The format's own limit.
inline constexpr std::uint64_t kMostSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20U;

/// The length of the header of a safetensors file, from its first 8 bytes. Pure.
Result<std::uint64_t> safetensors_header_bytes(std::string_view first_bytes);

/// Adds the tensors of one file to `out`: parameters, weights_bytes, bytes_by_type, the embeddings. `header` is the
/// JSON after the first 8 bytes. Errors name the offset in the file or the tensor. Pure; O(bytes).
Status add_safetensors(std::string_view header, ModelFacts& out);

/// The files that model.safetensors.index.json names, each once, in their order. Pure.
Result<std::vector<std::string>> indexed_files(std::string_view index);

/// The facts in config.json. For known architectures, the weights are derived from it, and `weights_are_counted` is
/// false; for others, this is an Error. Pure.
Result<ModelFacts> facts_of_config(std::string_view config);
/// Likewise for a model with counted weights: adds the other facts from the configuration.
Result<ModelFacts> facts_of_config(std::string_view config, const ModelFacts& counted);

}  // namespace vramtrack::sizing

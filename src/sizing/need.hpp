// Need: how much GPU memory a model takes for a task, part by part, each with its formula and its certainty. The
// sources of the formulas are in docs/fit.md. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "sizing/model.hpp"

namespace vramtrack::sizing {

/// Known optimizers, with their state per weight.
struct Optimizer {
  std::string_view name;
  double states;             ///< numbers kept per trained weight
  double state_bytes;        ///< bytes of each; 0: as wide as the trained weights
  std::string_view what;     ///< for messages
  bool has_scratch = false;  ///< PyTorch's own needs another number per weight during a step, unless it is fused
};
/// nullptr if unknown.
const Optimizer* find_optimizer(std::string_view name);
std::vector<std::string> optimizer_names();

/// How a model is trained.
struct Training {
  const Optimizer* optimizer = nullptr;
  enum class Precision : std::uint8_t { fp32, mixed, pure } precision = Precision::mixed;
  bool has_checkpoints = false;  ///< activations are recomputed in the backward pass
  bool is_lora = false;          ///< the weights are frozen, and small additional matrices are trained
};
/// "adamw,bf16", "adamw8bit,bf16,checkpoints", "adamw,bf16,lora". Errors name the word.
Result<Training> parse_training(std::string_view text);

struct Request {
  double context_tokens = 0;                  ///< the context length of each sequence
  double sequences = 1;                       ///< at the same time
  double shards = 1;                          ///< GPUs that share the tensors
  std::optional<double> cache_element_bytes;  ///< none: see cache_bytes_per_element()
  std::optional<double> weight_bits;          ///< per weight, instead of the width in the files
  std::optional<Training> training;
};

/// Bytes per element of a cache type, by the names of llama.cpp (--cache-type-k) and vLLM (--kv-cache-dtype).
Result<double> cache_type_bytes(std::string_view name);
/// As requested; by default 4 for a model that computes in 32 bits, otherwise 2.
double cache_bytes_per_element(const ModelFacts& model, const Request& request);
/// Bits per weight of a quantization by its name: "int8", "q4", "fp8", "bf16".
Result<double> weight_type_bits(std::string_view name);

/// One part of the need on one GPU.
struct Part {
  std::string name;
  double low_bytes = 0;
  double high_bytes = 0;
  std::string formula;  ///< with this model's numbers, for messages
};

struct Need {
  std::vector<Part> parts;
  [[nodiscard]] double low_bytes() const;
  [[nodiscard]] double high_bytes() const;
};

/// The need on one of request.shards GPUs.
Need need_of(const ModelFacts& model, const Request& request);

/// The additional memory that llama.cpp uses without flash attention: the scores of one batch of tokens with each token
/// of the context.
double scores_without_flash_bytes(const ModelFacts& model, const Request& request);

/// "8.03 billion", "1.2 million", "4,096".
std::string count_words(double count);

/// The weights alone, on one GPU.
double weights_on_gpu_bytes(const ModelFacts& model, const Request& request);

}  // namespace vramtrack::sizing

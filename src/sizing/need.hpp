// Need: how much GPU memory a model takes for what is to be done with it, part by part, each with its formula and how
// sure it is. The sources of the formulas are in docs/fit.md. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "sizing/model.hpp"

namespace vramtrack::sizing {

/// Optimizers that are known by name, with the state that each keeps for every weight.
struct Optimizer {
  std::string_view name;
  double states;             ///< numbers that it keeps for each trained weight
  double state_bytes;        ///< of each of them; 0: as wide as the weights that are trained
  std::string_view what;     ///< for people
  bool has_scratch = false;  ///< PyTorch's own takes another number for each weight while it steps, unless it is fused
};
/// nullptr: not known.
const Optimizer* find_optimizer(std::string_view name);
std::vector<std::string> optimizer_names();

/// How a model is trained.
struct Training {
  const Optimizer* optimizer = nullptr;
  enum class Precision : std::uint8_t { fp32, mixed, pure } precision = Precision::mixed;
  bool has_checkpoints = false;  ///< activations are computed again in the backward pass
  bool is_lora = false;          ///< the weights are frozen, and small matrices beside them are trained
};
/// "adamw,bf16", "adamw8bit,bf16,checkpoints", "adamw,bf16,lora". Errors name the word.
Result<Training> parse_training(std::string_view text);

struct Request {
  double context_tokens = 0;                  ///< of each sequence
  double sequences = 1;                       ///< at a time
  double shards = 1;                          ///< GPUs among which tensors are divided
  std::optional<double> cache_element_bytes;  ///< none: cache_bytes_per_element() says
  std::optional<double> weight_bits;          ///< per weight, instead of how the weights lie in the files
  std::optional<Training> training;
};

/// Bytes per element of a type of cache, by the names of llama.cpp (--cache-type-k) and vLLM (--kv-cache-dtype).
Result<double> cache_type_bytes(std::string_view name);
/// As the request says; if it says nothing, 4 for a model that computes in 32 bits, else 2.
double cache_bytes_per_element(const ModelFacts& model, const Request& request);
/// Bits per weight of a quantization by its name: "int8", "q4", "fp8", "bf16".
Result<double> weight_type_bits(std::string_view name);

/// One part of the need on one GPU.
struct Part {
  std::string name;
  double low_bytes = 0;
  double high_bytes = 0;
  std::string formula;  ///< with this model's numbers, for people
};

struct Need {
  std::vector<Part> parts;
  [[nodiscard]] double low_bytes() const;
  [[nodiscard]] double high_bytes() const;
};

/// On one of request.shards GPUs.
Need need_of(const ModelFacts& model, const Request& request);

/// What llama.cpp takes in addition where it runs without flash attention: the scores of the tokens that it computes at
/// a time with each token of the context.
double scores_without_flash_bytes(const ModelFacts& model, const Request& request);

/// "8.03 billion", "1.2 million", "4,096".
std::string count_words(double count);

/// The weights alone, on one GPU.
double weights_on_gpu_bytes(const ModelFacts& model, const Request& request);

}  // namespace vramtrack::sizing

#include "sizing/need.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/format.hpp"
#include "core/units.hpp"

namespace vramtrack::sizing {
namespace {

/// llama.cpp computes this many tokens at a time (--ubatch-size).
constexpr double kMicroBatch = 512;
/// The smallest and the largest chunk, in tokens, in which a server computes prompts (vLLM's max_num_batched_tokens,
/// SGLang's chunked_prefill_size, by size of the GPU).
constexpr double kFewTokens = 2048;
constexpr double kManyTokens = 8192;
/// What a process uses as soon as it starts, at least and at most: the driver's context and the libraries' kernels.
constexpr double kLeastContext = 0.25 * kGiB;
constexpr double kMostContext = 0.7 * kGiB;
/// Activations that some programs keep, relative to those that must be kept.
constexpr double kMostKept = 1.6;
/// LoRA's matrices, as a share of the weights: from rank 8 at the attention's query and value to rank 64 everywhere.
constexpr double kLeastLora = 0.0005;
constexpr double kMostLora = 0.03;

constexpr auto kOptimizers = std::to_array<Optimizer>({{"adamw", 2, 4, "two moments", true},
                                                       {"adam", 2, 4, "two moments", true},
                                                       {"adamw8bit", 2, 1, "two moments"},
                                                       {"lion", 1, 4, "one moment"},
                                                       {"sgd", 0, 0, "no state"},
                                                       {"momentum", 1, 4, "one moment"},
                                                       {"adafactor", 0, 0, "rows and columns of a moment, under 1 %"}});

struct Named {
  std::string_view name;
  double value;
};
constexpr auto kCacheTypes = std::to_array<Named>({{"f32", 4},
                                                   {"f16", 2},
                                                   {"fp16", 2},
                                                   {"bf16", 2},
                                                   {"auto", 2},
                                                   {"fp8", 1},
                                                   {"fp8_e4m3", 1},
                                                   {"fp8_e5m2", 1},
                                                   {"q8_0", 34.0 / 32},
                                                   {"q5_1", 24.0 / 32},
                                                   {"q5_0", 22.0 / 32},
                                                   {"q4_1", 20.0 / 32},
                                                   {"q4_0", 18.0 / 32}});
/// Including the scales that a quantization keeps with its weights; "q4" is llama.cpp's Q4_K_M.
constexpr auto kWeightTypes = std::to_array<Named>({{"fp32", 32},
                                                    {"f32", 32},
                                                    {"fp16", 16},
                                                    {"f16", 16},
                                                    {"bf16", 16},
                                                    {"fp8", 8.1},
                                                    {"int8", 8.25},
                                                    {"q8", 8.5},
                                                    {"q6", 6.56},
                                                    {"q5", 5.68},
                                                    {"q4", 4.85},
                                                    {"int4", 4.5}});

template <std::size_t N>
Result<double> value_of(const std::array<Named, N>& known, std::string_view name, std::string_view what) {
  const auto at = std::find_if(known.begin(), known.end(), [name](const Named& n) { return n.name == name; });
  if (at != known.end()) return at->value;
  std::string names;
  for (const Named& one : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  return fail(fmt::format("'{}' is not a known {}; expected one of: {}", printable(name), what, names));
}

double stored_bits(const ModelFacts& model) {
  return model.parameters > 0 ? 8 * model.weights_bytes / model.parameters : 16;
}

/// For all other weights, including quantized ones, results have 16 bits; llama.cpp's formulas have their own types.
bool computes_in_32_bits(const ModelFacts& model, const Request& request) {
  return !model.is_gguf && request.weight_bits.value_or(stored_bits(model)) > 24;
}

std::string shards_words(const Request& request) {
  return request.shards > 1 ? fmt::format(" / {:.0f} GPUs", request.shards) : std::string();
}

Part exact(std::string name, double bytes, std::string formula) {
  return {std::move(name), bytes, bytes, std::move(formula)};
}

Part cache_part(const ModelFacts& model, const Request& request) {
  const double element = cache_bytes_per_element(model, request);
  const double bytes = cache_bytes(model, request.context_tokens, request.sequences, element, request.shards);
  double elements = 0;
  std::size_t with_window = 0;
  double window = 0;
  for (const CacheLayer& layer : model.cache) {
    elements += layer.elements_per_token;
    if (layer.window_tokens > 0) {
      ++with_window;
      window = layer.window_tokens;
    }
  }
  std::string formula = fmt::format("{:.0f} numbers a token in {} layers x {:.4g} bytes x {:.0f} tokens x {:.0f} {}{}",
                                    elements, model.cache.size(), element, request.context_tokens, request.sequences,
                                    request.sequences == 1 ? "sequence" : "sequences", shards_words(request));
  if (with_window > 0) formula += fmt::format("; {} of the layers keep {:.0f} tokens at most", with_window, window);
  return exact("cache of keys and values", bytes, std::move(formula));
}

/// The memory in use while a chunk of a prompt is computed: the streams of one layer, and the scores of the vocabulary.
Part working_part(const ModelFacts& model, const Request& request) {
  if (model.is_gguf) {
    const double bytes = kMicroBatch * (model.vocabulary + model.hidden) * 4;
    return {"working memory", bytes, 1.3 * bytes,
            fmt::format(
                "{:.0f} tokens at a time x ({:.0f} of the vocabulary + {:.0f} wide) x 4 bytes, with flash attention",
                kMicroBatch, model.vocabulary, model.hidden)};
  }
  const double tokens = request.context_tokens * request.sequences;
  const double width = computes_in_32_bits(model, request) ? 4 : 2;
  const double per_token = width * (4 * model.hidden + (model.is_gated ? 3 : 2) * model.feed_forward) / request.shards;
  const double scores = request.sequences * model.vocabulary * 4;
  return {"working memory", std::min(tokens, kFewTokens) * per_token + scores,
          std::min(tokens, kManyTokens) * per_token + 2 * scores,
          fmt::format("{:.0f} to {:.0f} tokens at a time x {} + scores of the vocabulary", std::min(tokens, kFewTokens),
                      std::min(tokens, kManyTokens), format_size(whole(per_token)))};
}

Part context_part() {
  return {"driver's context and libraries", kLeastContext, kMostContext,
          "not in any header: depends on GPU, driver and framework"};
}

/// Bytes that training keeps per layer and token, after Korthikanti et al. (arXiv:2205.05198), for attention that
/// stores no scores, without dropout, and for a gated feed-forward.
Part activations_part(const ModelFacts& model, const Request& request, const Training& training) {
  const bool is_32 = training.precision == Training::Precision::fp32;
  const double width = is_32 ? 4 : 2;
  const double dim = model.heads > 0 ? model.hidden / model.heads : 0;
  const double per_layer =
      width * (6 * model.hidden + 2 * model.kv_heads * dim + (model.is_gated ? 4 : 2) * model.feed_forward);
  const double tokens = request.context_tokens * request.sequences;
  const auto layers = static_cast<double>(model.layers);
  const double checkpoints = training.has_checkpoints ? layers * width * model.hidden : 0;
  const double kept = training.has_checkpoints ? per_layer : layers * per_layer;
  // The loss is computed in 32 bits from 16-bit scores: the scores, their copy, and the gradient.
  const double scores = model.vocabulary * (width + 8);
  // A layer is recomputed only when the scores are no longer needed.
  const double least = checkpoints + (training.has_checkpoints ? std::max(kept, scores) : kept + scores);
  // Norms computed in 32 bits, and keys and values repeated for each head, as in transformers.
  const double most = kMostKept * (checkpoints + kept) + 1.5 * scores;
  return {
      "activations", tokens * least / request.shards, tokens * most / request.shards,
      fmt::format("{:.0f} tokens x ({} {} + {} of the vocabulary){}", tokens, format_size(whole(checkpoints + kept)),
                  training.has_checkpoints ? "of checkpoints and one layer" : fmt::format("of {} layers", model.layers),
                  format_size(whole(scores)), shards_words(request))};
}

void add_training(const ModelFacts& model, const Request& request, const Training& training, Need& out) {
  const double n = model.parameters / request.shards;
  const double width = training.precision == Training::Precision::fp32 ? 4 : 2;
  const std::string of = fmt::format("{} weights{}", count_words(model.parameters), shards_words(request));
  if (training.is_lora) {
    const double bits = request.weight_bits.value_or(std::min(16.0, stored_bits(model)));
    out.parts.push_back(exact("frozen weights", n * bits / 8, fmt::format("{} x {:.3g} bits", of, bits)));
    const double each = 4 + width + training.optimizer->states * std::max(1.0, training.optimizer->state_bytes);
    out.parts.push_back(
        {"LoRA's matrices, gradients and optimizer", kLeastLora * n * each, kMostLora * n * each,
         fmt::format("{:.2g} to {:.2g} % of the weights x {:.0f} bytes, by rank and by which layers have them",
                     100 * kLeastLora, 100 * kMostLora, each)});
    out.parts.push_back(activations_part(model, request, training));
    return;
  }
  const bool is_mixed = training.precision == Training::Precision::mixed;
  out.parts.push_back(exact("weights", n * width, fmt::format("{} x {:.0f} bytes", of, width)));
  // The backward pass allocates gradients while it frees activations. Both exist in full at the same time only if
  // gradients are kept from one micro-batch to the next.
  Part activations = activations_part(model, request, training);
  out.parts.push_back(
      {"gradients", std::max(0.0, n * width - activations.low_bytes), n * width,
       fmt::format("{} x {:.0f} bytes; the least if they take the room that activations release", of, width)});
  if (is_mixed)
    out.parts.push_back(
        exact("weights in 32 bits", n * 4, fmt::format("{} x 4 bytes, from which the 16 bits are made", of)));
  const Optimizer& optimizer = *training.optimizer;
  const double state_width =
      training.precision == Training::Precision::pure && optimizer.state_bytes > width ? width : optimizer.state_bytes;
  out.parts.push_back(
      exact(fmt::format("state of {}", optimizer.name), n * optimizer.states * state_width,
            fmt::format("{} x {:.0f} x {:.0f} bytes: {}", of, optimizer.states, state_width, optimizer.what)));
  const double scratch = optimizer.has_scratch ? n * (is_mixed ? 4 : width) : 0;
  if (scratch > activations.high_bytes) {
    activations.high_bytes = scratch;
    activations.formula += fmt::format("; later up to {} for the optimizer's step", format_bytes(scratch));
  }
  out.parts.push_back(std::move(activations));
}

}  // namespace

std::string count_words(double count) {
  if (count >= 1e9) return fmt::format("{:.2f} billion", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.1f} million", count / 1e6);
  return format_number(whole(count));
}

const Optimizer* find_optimizer(std::string_view name) {
  const auto at =
      std::find_if(kOptimizers.begin(), kOptimizers.end(), [name](const Optimizer& o) { return o.name == name; });
  return at == kOptimizers.end() ? nullptr : &*at;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> out;
  for (const Optimizer& one : kOptimizers) out.emplace_back(one.name);
  return out;
}

Result<Training> parse_training(std::string_view text) {
  Training out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (const Optimizer* optimizer = find_optimizer(word))
      out.optimizer = optimizer;
    else if (word == "fp32")
      out.precision = Training::Precision::fp32;
    else if (word == "bf16" || word == "fp16")
      out.precision = Training::Precision::mixed;
    else if (word == "pure-bf16")
      out.precision = Training::Precision::pure;
    else if (word == "checkpoints")
      out.has_checkpoints = true;
    else if (word == "lora")
      out.is_lora = true;
    else
      return fail(
          fmt::format("'{}' is not known; expected an optimizer ({}), a precision (bf16, fp16, pure-bf16, fp32), "
                      "checkpoints or lora",
                      printable(word), fmt::join(optimizer_names(), ", ")));
  }
  if (out.optimizer == nullptr)
    return fail(fmt::format("no optimizer is named; expected one of: {}", fmt::join(optimizer_names(), ", ")));
  return out;
}

Result<double> cache_type_bytes(std::string_view name) {
  return value_of(kCacheTypes, name, "type of cache");
}

Result<double> weight_type_bits(std::string_view name) {
  return value_of(kWeightTypes, name, "type of weights");
}

double cache_bytes_per_element(const ModelFacts& model, const Request& request) {
  return request.cache_element_bytes.value_or(computes_in_32_bits(model, request) ? 4 : 2);
}

double Need::low_bytes() const {
  double sum = 0;
  for (const Part& part : parts) sum += part.low_bytes;
  return sum;
}

double Need::high_bytes() const {
  double sum = 0;
  for (const Part& part : parts) sum += part.high_bytes;
  return sum;
}

double scores_without_flash_bytes(const ModelFacts& model, const Request& request) {
  return kMicroBatch * request.context_tokens * request.sequences * model.heads * 4;
}

double weights_on_gpu_bytes(const ModelFacts& model, const Request& request) {
  double bytes = request.weight_bits ? model.parameters * *request.weight_bits / 8 : model.weights_bytes;
  // llama.cpp leaves the input embeddings in host memory, unless they are the output as well.
  if (model.is_gguf && model.has_output_matrix && model.weights_bytes > 0)
    bytes *= 1 - model.input_embedding_bytes / model.weights_bytes;
  return bytes / request.shards;
}

Need need_of(const ModelFacts& model, const Request& request) {
  Need out;
  if (request.training) {
    add_training(model, request, *request.training, out);
  } else {
    const double bits = request.weight_bits.value_or(stored_bits(model));
    out.parts.push_back(exact(
        "weights", weights_on_gpu_bytes(model, request),
        fmt::format("{} weights x {:.3g} bits{}{}", count_words(model.parameters), bits,
                    model.is_gguf && model.has_output_matrix
                        ? fmt::format(", without the input embeddings ({})", format_bytes(model.input_embedding_bytes))
                        : std::string(),
                    shards_words(request))));
    out.parts.push_back(cache_part(model, request));
    out.parts.push_back(working_part(model, request));
  }
  out.parts.push_back(context_part());
  return out;
}

}  // namespace vramtrack::sizing

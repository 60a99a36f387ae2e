#include "sizing/hugging_face.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "core/json.hpp"

namespace vramtrack::sizing {
namespace {

/// A member of an object; nullptr: missing or null.
const Json* find(const Json& object, const char* key) {
  const Json* const at = object.find(key);
  return at == nullptr || at->is_null() ? nullptr : at;
}

std::optional<double> number(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const auto n = value->get<double>();
  return n >= 0 && n <= kMostOfAnything ? std::optional(n) : std::nullopt;
}

/// The first of these keys that exists: model families use different names.
double number(const Json& object, std::initializer_list<const char*> keys, double otherwise = 0) {
  for (const char* key : keys)
    if (const auto n = number(object, key)) return *n;
  return otherwise;
}

std::optional<bool> truth(const Json& object, const char* key) {
  const Json* value = find(object, key);
  return value != nullptr && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
}

struct Dtype {
  std::string_view name;
  double bytes;
};
/// The types of safetensors (from its README), and those of "torch_dtype".
constexpr auto kDtypes = std::to_array<Dtype>(
    {{"F64", 8},     {"F32", 4},      {"F16", 2},          {"BF16", 2},    {"I64", 8},     {"I32", 4},
     {"I16", 2},     {"I8", 1},       {"U64", 8},          {"U32", 4},     {"U16", 2},     {"U8", 1},
     {"BOOL", 1},    {"F8_E4M3", 1},  {"F8_E5M2", 1},      {"F8_E8M0", 1}, {"float64", 8}, {"float32", 4},
     {"float16", 2}, {"bfloat16", 2}, {"float8_e4m3fn", 1}});

double dtype_bytes(std::string_view name) {
  const auto at = std::find_if(kDtypes.begin(), kDtypes.end(), [name](const Dtype& d) { return d.name == name; });
  return at == kDtypes.end() ? 0 : at->bytes;
}

Status add_tensor(const std::string& name, const Json& tensor, ModelFacts& out) {
  const auto refuse = [&name](const std::string& what) { return fail(fmt::format("tensor '{}': {}", name, what)); };
  const Json* shape = find(tensor, "shape");
  const Json* offsets = find(tensor, "data_offsets");
  const std::string dtype = text_in(tensor, "dtype");
  if (shape == nullptr || !shape->is_array() || dtype.empty()) return refuse("expected a dtype and a shape");
  if (offsets == nullptr || !offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned())
    return refuse("expected data_offsets with two whole numbers");
  const auto begin = (*offsets)[0].get<std::uint64_t>();
  const auto end = (*offsets)[1].get<std::uint64_t>();
  if (end < begin) return refuse("its data_offsets end before they begin");
  double elements = 1;
  for (const Json& size : *shape) {
    if (!size.is_number_unsigned()) return refuse("expected whole numbers in its shape");
    elements *= static_cast<double>(size.get<std::uint64_t>());
  }
  elements = std::min(elements, kMostOfAnything);
  const auto bytes = std::min(static_cast<double>(end - begin), kMostOfAnything);
  out.parameters += elements;
  out.weights_bytes += bytes;
  out.bytes_by_type[dtype] += bytes;
  if (name.ends_with("embed_tokens.weight") || name.ends_with("wte.weight") || name.ends_with("word_embeddings.weight"))
    out.input_embedding_bytes = std::max(out.input_embedding_bytes, bytes);
  return {};
}

/// An architecture with known weight shapes.
struct Shape {
  std::string_view type;
  bool is_gated;     ///< three matrices of feed-forward, not two
  bool ties_output;  ///< unless the configuration states otherwise
};
constexpr auto kShapes =
    std::to_array<Shape>({{"llama", true, false},       {"mistral", true, false},    {"mixtral", true, false},
                          {"qwen2", true, false},       {"qwen2_moe", true, false},  {"qwen3", true, false},
                          {"qwen3_moe", true, false},   {"gemma", true, true},       {"gemma2", true, true},
                          {"gemma3_text", true, true},  {"phi3", true, false},       {"olmo2", true, false},
                          {"granite", true, false},     {"internlm2", true, false},  {"deepseek_v2", true, false},
                          {"deepseek_v3", true, false}, {"phi", false, false},       {"gpt2", false, true},
                          {"gpt_neox", false, false},   {"starcoder2", false, true}, {"opt", false, true}});

const Shape* find_shape(const std::string& type) {
  const auto at = std::find_if(kShapes.begin(), kShapes.end(), [&](const Shape& s) { return s.type == type; });
  return at == kShapes.end() ? nullptr : &*at;
}

double head_dim(const Json& config, const ModelFacts& out) {
  return number(config, {"head_dim"}, out.heads > 0 ? out.hidden / out.heads : 0);
}

/// The model's type for layer `i`; nullopt if it has no types of layers.
std::optional<std::string> layer_type(const Json& config, std::size_t i) {
  const Json* types = find(config, "layer_types");
  if (types == nullptr || !types->is_array() || i >= types->size()) return std::nullopt;
  return (*types)[i].is_string() ? (*types)[i].text() : std::string();
}

/// The window of layer `i` in tokens, as in the families' own code; 0: it keeps the whole context.
double window_of(const Json& config, std::size_t i, const std::string& type) {
  const double window = number(config, {"sliding_window"});
  if (window == 0 || truth(config, "use_sliding_window") == false) return 0;
  if (const auto kind = layer_type(config, i)) return *kind == "sliding_attention" ? window : 0;
  const auto every = static_cast<std::size_t>(std::min(1e6, number(config, {"sliding_window_pattern"},
                                                                   type == "gemma2"        ? 2
                                                                   : type == "gemma3_text" ? 6
                                                                                           : 0)));
  if (every > 0) return (i + 1) % every == 0 ? 0 : window;
  if (const auto from = number(config, "max_window_layers"); from && type.starts_with("qwen"))
    return static_cast<double>(i) < *from ? 0 : window;
  return window;
}

void add_cache(const Json& config, ModelFacts& out) {
  const double latent = number(config, {"kv_lora_rank"});
  const double dim = head_dim(config, out);
  const bool names_types = find(config, "layer_types") != nullptr;
  const auto interval = static_cast<std::size_t>(std::min(1e6, number(config, {"full_attention_interval"})));
  bool has_states = false;
  for (std::size_t i = 0; i < out.layers; ++i) {
    const std::string kind = layer_type(config, i).value_or("");
    const bool is_linear = kind == "linear_attention" || kind == "mamba" || kind == "conv";
    if (is_linear || (!names_types && interval > 1 && (i + 1) % interval != 0)) {
      has_states = true;
      continue;
    }
    CacheLayer layer;
    if (latent > 0) {
      layer.elements_per_token = latent + number(config, {"qk_rope_head_dim"});
      layer.is_shared = true;
    } else {
      layer.elements_per_token = 2 * out.kv_heads * dim;
      layer.window_tokens = window_of(config, i, out.architecture);
    }
    if (layer.elements_per_token > 0) out.cache.push_back(layer);
  }
  if (has_states) out.left_out.emplace_back("the state of recurrent layers, which does not grow with the context");
}

double attention_parameters(const Json& config, const ModelFacts& out) {
  const double dim = head_dim(config, out);
  const double latent = number(config, {"kv_lora_rank"});
  if (latent == 0) {
    const double inner = out.heads * dim;
    const double kv = out.kv_heads * dim;
    const bool has_bias = out.architecture.starts_with("qwen2") || truth(config, "attention_bias") == true;
    return 2 * out.hidden * inner + 2 * out.hidden * kv + (has_bias ? inner + 2 * kv : 0);
  }
  const double rope = number(config, {"qk_rope_head_dim"});
  const double nope = number(config, {"qk_nope_head_dim"});
  const double value = number(config, {"v_head_dim"});
  const double query_rank = number(config, {"q_lora_rank"});
  const double query = query_rank > 0 ? out.hidden * query_rank + query_rank * out.heads * (nope + rope)
                                      : out.hidden * out.heads * (nope + rope);
  return query + out.hidden * (latent + rope) + latent * out.heads * (nope + value) + out.heads * value * out.hidden;
}

/// All weights by their shapes. Small biases and norm vectors of some families are left out.
Status derive_weights(const Json& config, ModelFacts& out) {
  const Shape* shape = find_shape(out.architecture);
  if (shape == nullptr)
    return fail(
        fmt::format("the weights of a '{}' cannot be derived from config.json alone; name the folder with its "
                    "safetensors files, or a GGUF file",
                    out.architecture));
  const double matrices = shape->is_gated ? 3 : 2;
  const double dense =
      matrices * out.hidden * number(config, {"intermediate_size", "ffn_dim", "n_inner"}, 4 * out.hidden);
  const double expert =
      matrices * out.hidden * number(config, {"moe_intermediate_size"}, dense / matrices / out.hidden);
  const double shared = matrices * out.hidden *
                        number(config, {"shared_expert_intermediate_size"},
                               number(config, {"n_shared_experts"}) * number(config, {"moe_intermediate_size"}));
  const double dense_layers =
      out.experts > 0 ? number(config, {"first_k_dense_replace"}) : static_cast<double>(out.layers);
  const double attention = attention_parameters(config, out);
  const double norms = 2 * out.hidden;
  const auto layers = static_cast<double>(out.layers);
  const double moe_layers = std::max(0.0, layers - dense_layers);
  out.parameters = layers * (attention + norms) + std::min(layers, dense_layers) * dense +
                   moe_layers * (out.experts * expert + shared + out.hidden * out.experts) + out.hidden;
  const double table = out.vocabulary * out.hidden;
  out.has_output_matrix = !truth(config, "tie_word_embeddings").value_or(shape->ties_output);
  out.parameters += table * (out.has_output_matrix ? 2 : 1);
  std::string dtype = text_in(config, "torch_dtype");
  if (dtype.empty()) dtype = text_in(config, "dtype");
  double bytes = dtype_bytes(dtype);
  if (bytes == 0) {
    dtype = "bfloat16";
    bytes = 2;
  }
  out.bytes_by_type[dtype] = out.parameters * bytes;
  out.weights_bytes = out.parameters * bytes;
  out.input_embedding_bytes = table * bytes;
  out.weights_are_counted = false;
  if (find(config, "quantization_config") != nullptr)
    return fail(
        "the model is quantized, and config.json alone does not say how large that makes it; name the folder "
        "with its safetensors files");
  return {};
}

Result<ModelFacts> read_config(std::string_view config_text, const ModelFacts* counted) {
  if (config_text.size() > kMostConfigBytes)
    return fail(fmt::format("config.json has {} bytes; at most {} are read", config_text.size(), kMostConfigBytes));
  const auto root = Json::parse(config_text);
  if (!root) return tl::unexpected(root.error());
  if (!root->is_object()) return fail("offset 0: expected a JSON object, as in config.json of a model");
  // A multi-part model has a separate configuration for its language model.
  const Json* inner = find(*root, "text_config");
  const Json& config =
      inner != nullptr && inner->is_object() && find(*inner, "hidden_size") != nullptr ? *inner : *root;
  ModelFacts out = counted != nullptr ? *counted : ModelFacts();
  out.architecture = text_in(config, "model_type");
  out.name = text_in(*root, "_name_or_path");
  const double layers = number(config, {"num_hidden_layers", "n_layer", "num_layers"});
  out.hidden = number(config, {"hidden_size", "n_embd", "d_model"});
  out.heads = number(config, {"num_attention_heads", "n_head"});
  if (layers < 1 || layers > 100'000 || out.hidden < 1 || out.heads < 1)
    return fail(
        "config.json has no usable num_hidden_layers, hidden_size and num_attention_heads; this command supports "
        "language models only");
  out.layers = static_cast<std::size_t>(layers);
  out.kv_heads = number(config, {"num_key_value_heads"}, out.heads);
  out.vocabulary = number(config, {"vocab_size"});
  out.experts = number(config, {"num_local_experts", "num_experts", "n_routed_experts"});
  const double used = number(config, {"num_experts_per_tok"}, 1);
  out.feed_forward = number(config, {"intermediate_size", "ffn_dim", "n_inner"}, 4 * out.hidden);
  if (out.experts > 0) out.feed_forward = used * number(config, {"moe_intermediate_size"}, out.feed_forward);
  out.trained_context = number(config, {"max_position_embeddings", "n_positions", "n_ctx"});
  if (const Shape* shape = find_shape(out.architecture)) out.is_gated = shape->is_gated;
  add_cache(config, out);
  if (counted == nullptr) {
    if (const Status derived = derive_weights(config, out); !derived) return tl::unexpected(derived.error());
    if (&config != &*root) out.left_out.emplace_back("the parts of the model that do not handle text");
  }
  return out;
}

}  // namespace

Result<std::uint64_t> safetensors_header_bytes(std::string_view first_bytes) {
  std::uint64_t length = 0;
  if (first_bytes.size() < sizeof length)
    return fail(fmt::format("offset {}: the file ends within the 8 bytes of the header's length", first_bytes.size()));
  std::memcpy(&length, first_bytes.data(), sizeof length);
  if (length < 2 || length > kMostSafetensorsHeaderBytes)
    return fail(fmt::format("offset 0: a header of {} bytes; a safetensors file has one of 2 to {}", length,
                            kMostSafetensorsHeaderBytes));
  return length;
}

Status add_safetensors(std::string_view header, ModelFacts& out) {
  const auto root = Json::parse(header, sizeof(std::uint64_t));
  if (!root) return tl::unexpected(root.error());
  if (!root->is_object()) return fail("offset 8: expected a JSON object with the tensors");
  for (const auto& [name, tensor] : root->items())
    if (name != "__metadata__")
      if (const Status added = add_tensor(name, tensor, out); !added) return added;
  return {};
}

Result<std::vector<std::string>> indexed_files(std::string_view index) {
  const auto root = Json::parse(index);
  if (!root) return tl::unexpected(root.error());
  const Json* map = find(*root, "weight_map");
  if (map == nullptr || !map->is_object()) return fail("expected an object weight_map");
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) return fail(fmt::format("tensor '{}': expected the name of its file", tensor));
    auto name = file.get<std::string>();
    if (name.empty() || name.find('/') != std::string::npos)
      return fail(fmt::format("tensor '{}': '{}' is not a file next to the index", tensor, name));
    files.insert(std::move(name));
  }
  return std::vector<std::string>(files.begin(), files.end());
}

Result<ModelFacts> facts_of_config(std::string_view config) {
  return read_config(config, nullptr);
}

Result<ModelFacts> facts_of_config(std::string_view config, const ModelFacts& counted) {
  return read_config(config, &counted);
}

}  // namespace vramtrack::sizing

#include "sizing/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

namespace vramtrack::sizing {
namespace {

constexpr std::size_t kMostNumbers = 4096;      // of an array that is kept: one number per layer
constexpr std::size_t kMostText = 4096;         // of a text that is kept
constexpr std::uint64_t kMostName = 64 * 1024;  // the specification allows keys of 65,535 bytes
constexpr std::uint64_t kMostEntries = 1 << 22;
constexpr int kDeepest = 4;
constexpr std::uint32_t kMostDimensions = 8;
/// llama.cpp keeps a window plus the tokens of one batch, in steps (src/llama-kv-cache-iswa.cpp).
constexpr double kMicroBatch = 512;
constexpr double kCacheStep = 256;

struct TypeInfo {
  std::uint32_t number;
  std::string_view name;
  double block_elements;
  double block_bytes;
};
constexpr auto kTypes = std::to_array<TypeInfo>({
#define VRAMTRACK_GGUF_TYPE(number, name, elements, bytes) {number, name, elements, bytes},
#include "sizing/gguf_types.def"
#undef VRAMTRACK_GGUF_TYPE
});

const TypeInfo* find_type(std::uint32_t number) {
  const auto at =
      std::find_if(kTypes.begin(), kTypes.end(), [number](const TypeInfo& t) { return t.number == number; });
  return at == kTypes.end() ? nullptr : &*at;
}

/// Types of metadata values, as numbered in the file.
enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

std::size_t width_of(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean:
      return 1;
    case ValueType::u16:
    case ValueType::i16:
      return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32:
      return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
      return 8;
    default:
      return 0;
  }
}

template <class T>
double as_number(const char* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

double number_at(const char* at, ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::boolean:
      return as_number<std::uint8_t>(at);
    case ValueType::i8:
      return as_number<std::int8_t>(at);
    case ValueType::u16:
      return as_number<std::uint16_t>(at);
    case ValueType::i16:
      return as_number<std::int16_t>(at);
    case ValueType::u32:
      return as_number<std::uint32_t>(at);
    case ValueType::i32:
      return as_number<std::int32_t>(at);
    case ValueType::f32:
      return as_number<float>(at);
    case ValueType::u64:
      return as_number<std::uint64_t>(at);
    case ValueType::i64:
      return as_number<std::int64_t>(at);
    case ValueType::f64:
      return as_number<double>(at);
    default:
      return 0;
  }
}

/// Reads from front to back. After an error, nothing more is read.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool is_good() const { return !is_cut_ && error_.empty(); }
  [[nodiscard]] bool is_cut() const { return is_cut_; }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::size_t at() const { return at_; }

  void refuse(const std::string& what) {
    if (is_good()) error_ = fmt::format("offset {}: {}", at_, what);
  }
  /// The next `count` bytes; nullptr: not available.
  const char* take(std::uint64_t count) {
    if (!is_good()) return nullptr;
    if (count > bytes_.size() - at_) {
      is_cut_ = true;
      return nullptr;
    }
    const char* const begin = bytes_.data() + at_;
    at_ += static_cast<std::size_t>(count);
    return begin;
  }
  template <class T>
  T number() {
    const char* const begin = take(sizeof(T));
    T value{};
    if (begin != nullptr) std::memcpy(&value, begin, sizeof value);
    return value;
  }
  std::string_view text(std::uint64_t most, std::string_view what) {
    const auto length = number<std::uint64_t>();
    if (length > most) refuse(fmt::format("a {} of {} bytes; at most {} are allowed", what, length, most));
    const char* const begin = take(length);
    return begin == nullptr ? std::string_view() : std::string_view(begin, static_cast<std::size_t>(length));
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool is_cut_ = false;
  std::string error_;
};

void read_value(Cursor& cursor, ValueType type, GgufValue& value, int depth) {
  if (type == ValueType::text) {
    const std::string_view text = cursor.text(kMostGgufHeaderBytes, "text");
    if (depth == 0) value.text = text.substr(0, kMostText);
    return;
  }
  if (type != ValueType::array) {
    const std::size_t width = width_of(type);
    if (width == 0)
      return cursor.refuse(fmt::format("a value of the unknown type {}", static_cast<std::uint32_t>(type)));
    const char* const begin = cursor.take(width);
    if (begin != nullptr && value.numbers.size() < kMostNumbers) value.numbers.push_back(number_at(begin, type));
    return;
  }
  if (depth == kDeepest) return cursor.refuse("arrays within arrays, too deep");
  const auto element = static_cast<ValueType>(cursor.number<std::uint32_t>());
  const auto count = cursor.number<std::uint64_t>();
  if (depth == 0) value.count = count;
  const std::size_t width = width_of(element);
  if (width != 0 && count > kMostNumbers) {
    if (count > kMostGgufHeaderBytes) return cursor.refuse(fmt::format("an array of {} values", count));
    cursor.take(count * width);
    return;
  }
  // Strings and arrays take at least 8 bytes each, so a false count stops at the end of the bytes.
  for (std::uint64_t i = 0; i < count && cursor.is_good(); ++i) read_value(cursor, element, value, depth + 1);
}

void read_tensor(Cursor& cursor, GgufHeader& header) {
  GgufTensor tensor;
  tensor.name = cursor.text(kMostName, "tensor's name");
  const auto dimensions = cursor.number<std::uint32_t>();
  if (dimensions > kMostDimensions)
    return cursor.refuse(fmt::format("a tensor of {} dimensions; at most {} are allowed", dimensions, kMostDimensions));
  tensor.elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) tensor.elements *= static_cast<double>(cursor.number<std::uint64_t>());
  tensor.elements = std::min(tensor.elements, kMostOfAnything);
  tensor.type = cursor.number<std::uint32_t>();
  tensor.offset = cursor.number<std::uint64_t>();
  if (cursor.is_good()) header.tensors.push_back(std::move(tensor));
}

/// Negative, too large or invalid numbers count as 0.
double sane(double number) {
  return number > 0 && number <= kMostOfAnything ? number : 0;
}

/// The metadata of one architecture: "llama.block_count".
class Keys {
 public:
  explicit Keys(const GgufHeader& header) : header_(header) {
    if (const GgufValue* name = find("general.architecture")) architecture_ = name->text;
  }
  [[nodiscard]] const std::string& architecture() const { return architecture_; }
  [[nodiscard]] const GgufValue* find(const std::string& key) const {
    const auto at = header_.values.find(key);
    return at == header_.values.end() ? nullptr : &at->second;
  }
  [[nodiscard]] const GgufValue* own(const std::string& key) const { return find(architecture_ + '.' + key); }
  /// The largest value of an array; `otherwise` if the key is missing.
  [[nodiscard]] double number(const std::string& key, double otherwise = 0) const {
    const GgufValue* value = own(key);
    if (value == nullptr || value->numbers.empty()) return otherwise;
    return sane(*std::max_element(value->numbers.begin(), value->numbers.end()));
  }
  /// The value for one layer, if the file has one per layer.
  [[nodiscard]] double number(const std::string& key, std::size_t layer, double otherwise) const {
    const GgufValue* value = own(key);
    if (value == nullptr || value->numbers.empty()) return otherwise;
    if (value->numbers.size() == 1) return sane(value->numbers.front());
    return layer < value->numbers.size() ? sane(value->numbers[layer]) : otherwise;
  }

 private:
  const GgufHeader& header_;
  std::string architecture_;
};

/// The interval of layers that see the whole context if the others have a window, as llama.cpp sets it
/// (src/llama-model.cpp, set_swa_pattern); 0: every layer has the window.
std::size_t full_every(const std::string& architecture) {
  struct Pattern {
    std::string_view architecture;
    std::size_t every;
  };
  constexpr auto kPatterns = std::to_array<Pattern>({{"gemma2", 2},
                                                     {"gemma3", 6},
                                                     {"gpt-oss", 2},
                                                     {"cohere2", 4},
                                                     {"llama4", 4},
                                                     {"exaone4", 4},
                                                     {"gemma3n", 5},
                                                     {"olmo2", 4},
                                                     {"smallthinker", 4}});
  const auto at = std::find_if(kPatterns.begin(), kPatterns.end(),
                               [&](const Pattern& p) { return p.architecture == architecture; });
  return at == kPatterns.end() ? 0 : at->every;
}

void add_cache(const Keys& keys, ModelFacts& out) {
  const double head = out.heads > 0 ? out.hidden / out.heads : 0;
  const double key = keys.number("attention.key_length", head);
  const double value = keys.number("attention.value_length", head);
  const double latent = keys.number("attention.kv_lora_rank");
  const double window = keys.number("attention.sliding_window");
  const std::size_t every = full_every(keys.architecture());
  const bool is_recurrent = keys.own("ssm.state_size") != nullptr || keys.own("wkv.head_size") != nullptr;
  const auto interval = static_cast<std::size_t>(std::min(1e6, keys.number("full_attention_interval")));
  for (std::size_t i = 0; i < out.layers; ++i) {
    CacheLayer layer;
    const double kv_heads = keys.number("attention.head_count_kv", i, out.heads);
    if (latent > 0) {
      layer.elements_per_token = latent + keys.number("rope.dimension_count");
      layer.is_shared = true;
    } else if (interval > 1 && (i + 1) % interval != 0) {
      continue;
    } else {
      layer.elements_per_token = kv_heads * (key + value);
      if (window > 0 && every > 0 && (i + 1) % every != 0)
        layer.window_tokens = std::ceil((window + kMicroBatch) / kCacheStep) * kCacheStep;
    }
    if (layer.elements_per_token > 0) out.cache.push_back(layer);
  }
  if (is_recurrent) out.left_out.emplace_back("the state of recurrent layers, which does not grow with the context");
  if (window > 0 && every == 0 && keys.architecture() != "phi3")
    out.left_out.emplace_back("a sliding window, which would make the cache smaller");
}

}  // namespace

std::string_view gguf_type_name(std::uint32_t type) {
  const TypeInfo* info = find_type(type);
  return info == nullptr ? std::string_view() : info->name;
}

double gguf_type_bytes(std::uint32_t type, double elements) {
  const TypeInfo* info = find_type(type);
  return info == nullptr ? 0 : elements / info->block_elements * info->block_bytes;
}

Result<GgufRead> parse_gguf(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little, "GGUF files are little endian");
  Cursor cursor(bytes);
  GgufRead out;
  const char* const magic = cursor.take(4);
  if (magic != nullptr && std::string_view(magic, 4) != "GGUF")
    return fail("offset 0: a GGUF file begins with 'GGUF'; this is another kind of file");
  out.header.version = cursor.number<std::uint32_t>();
  if (cursor.is_good() && (out.header.version < 2 || out.header.version > 3))
    return fail(fmt::format("offset 4: version {} of GGUF; versions 2 and 3 can be read", out.header.version));
  const auto tensors = cursor.number<std::uint64_t>();
  const auto values = cursor.number<std::uint64_t>();
  if (tensors > kMostEntries || values > kMostEntries)
    cursor.refuse(fmt::format("{} tensors and {} values; at most {} of each are read", tensors, values, kMostEntries));
  for (std::uint64_t i = 0; i < values && cursor.is_good(); ++i) {
    std::string key(cursor.text(kMostName, "key"));
    const auto type = static_cast<ValueType>(cursor.number<std::uint32_t>());
    GgufValue value;
    read_value(cursor, type, value, 0);
    if (cursor.is_good()) out.header.values[std::move(key)] = std::move(value);
  }
  for (std::uint64_t i = 0; i < tensors && cursor.is_good(); ++i) read_tensor(cursor, out.header);
  if (!cursor.error().empty()) return fail(cursor.error());
  out.is_cut = cursor.is_cut();
  out.header.end = cursor.at();
  return out;
}

std::size_t parts_of(const GgufHeader& header) {
  const auto at = header.values.find("split.count");
  if (at == header.values.end() || at->second.numbers.empty()) return 1;
  return static_cast<std::size_t>(std::clamp(sane(at->second.numbers.front()), 1.0, 1000.0));
}

Result<ModelFacts> facts_of(const GgufHeader& header, double data_bytes) {
  const Keys keys(header);
  ModelFacts out;
  out.is_gguf = true;
  out.architecture = keys.architecture();
  if (const GgufValue* name = keys.find("general.name")) out.name = name->text;
  if (out.architecture.empty()) return fail("the header has no general.architecture; it is not a model for llama.cpp");
  const double layers = keys.number("block_count");
  if (layers < 1 || layers > 100'000)
    return fail(fmt::format("the header has no usable {}.block_count, the number of layers", out.architecture));
  out.layers = static_cast<std::size_t>(layers);
  out.hidden = keys.number("embedding_length");
  out.heads = keys.number("attention.head_count");
  out.kv_heads = keys.number("attention.head_count_kv", out.heads);
  out.experts = keys.number("expert_count");
  out.feed_forward = keys.number("feed_forward_length");
  if (out.experts > 0)
    out.feed_forward =
        std::max(1.0, keys.number("expert_used_count")) * keys.number("expert_feed_forward_length", out.feed_forward);
  out.trained_context = keys.number("context_length");
  out.has_output_matrix = false;
  double unknown_elements = 0;
  for (const GgufTensor& tensor : header.tensors) {
    const double bytes = gguf_type_bytes(tensor.type, tensor.elements);
    out.parameters += tensor.elements;
    out.weights_bytes += bytes;
    if (bytes == 0) unknown_elements += tensor.elements;
    std::string type(gguf_type_name(tensor.type));
    out.bytes_by_type[type.empty() ? fmt::format("type {}", tensor.type) : std::move(type)] += bytes;
    if (tensor.name == "token_embd.weight") {
      out.input_embedding_bytes = bytes;
      if (out.hidden > 0) out.vocabulary = tensor.elements / out.hidden;
    }
    if (tensor.name == "output.weight") out.has_output_matrix = true;
  }
  if (unknown_elements > 0) {
    // All types together fill the data, except for padding.
    if (data_bytes > out.weights_bytes)
      out.weights_bytes = data_bytes;
    else
      out.left_out.emplace_back("tensors of an unknown type");
  }
  if (const GgufValue* tokens = keys.find("tokenizer.ggml.tokens"); tokens != nullptr && out.vocabulary == 0)
    out.vocabulary = static_cast<double>(tokens->count);
  add_cache(keys, out);
  return out;
}

}  // namespace vramtrack::sizing

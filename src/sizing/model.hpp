// ModelFacts: the facts in the headers of a model's files that determine its memory need. Numbers are doubles: a
// hostile file may contain any size, and a product of such sizes must not wrap around.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vramtrack::sizing {

/// No valid header contains larger numbers, and products of larger ones could exceed the range of a double.
inline constexpr double kMostOfAnything = 1e15;

/// A size as a whole number, for messages: at most 10^18. Negative and undefined ones are 0.
std::uint64_t whole(double size);

/// The cache of one layer per token.
struct CacheLayer {
  double elements_per_token = 0;  ///< keys and values of all heads; for latent attention, the compressed vector
  double window_tokens = 0;       ///< no more tokens than this are kept; 0: all of them
  bool is_shared = false;         ///< each shard keeps all of it: latent attention has no heads to divide
  friend bool operator==(const CacheLayer&, const CacheLayer&) = default;
};

/// The facts in a model's files.
struct ModelFacts {
  std::string name;          ///< the name in the file; untrusted
  std::string architecture;  ///< "llama", "qwen3_moe"; untrusted
  bool is_gguf = false;

  double parameters = 0;
  double weights_bytes = 0;         ///< as stored in the files
  bool weights_are_counted = true;  ///< false: there were no weights to count; derived from the configuration
  std::map<std::string, double> bytes_by_type;  ///< of the weights: "Q4_K", "BF16"
  /// The table of input embeddings. llama.cpp leaves it in host memory.
  double input_embedding_bytes = 0;
  bool has_output_matrix = true;  ///< false: the input embeddings serve as the output, too

  std::size_t layers = 0;
  double hidden = 0;
  double heads = 0;
  double kv_heads = 0;      ///< the key-value heads of the largest layer
  double feed_forward = 0;  ///< of a dense layer, or of the experts that one token uses in total
  bool is_gated = true;     ///< the feed-forward has a gate in addition to its up projection
  double vocabulary = 0;
  double experts = 0;  ///< per layer; 0: dense
  double trained_context = 0;
  std::vector<CacheLayer> cache;
  std::vector<std::string> left_out;  ///< parts of this model that the figures leave out, for messages
};

/// The bytes of the caches of `sequences` sequences of `context` tokens, at `bytes_per_element`, on one of `shards`
/// GPUs. Indivisible heads are kept on each. Pure.
double cache_bytes(const ModelFacts& model, double context, double sequences, double bytes_per_element, double shards);

/// The bytes for one more token while no window is full: the unit in which servers compute. Pure.
double cache_bytes_per_token(const ModelFacts& model, double bytes_per_element, double shards);

}  // namespace vramtrack::sizing

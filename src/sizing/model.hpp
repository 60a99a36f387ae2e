// ModelFacts: what the headers of a model's files say about the memory that it needs. Numbers are doubles: a hostile
// file may name any size, and a product of such sizes must not wrap around.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vramtrack::sizing {

/// No header names anything larger: greater numbers are nonsense, whose products could leave the range of a double.
inline constexpr double kMostOfAnything = 1e15;

/// A size as a whole number, for people: at most 10^18. Negative and undefined ones are 0.
std::uint64_t whole(double size);

/// What one layer caches of each token.
struct CacheLayer {
  double elements_per_token = 0;  ///< keys and values of all heads; of latent attention, the compressed vector
  double window_tokens = 0;       ///< no more tokens than this are kept; 0: all of them
  bool is_shared = false;         ///< each shard keeps all of it: latent attention has no heads to divide
  friend bool operator==(const CacheLayer&, const CacheLayer&) = default;
};

/// What a model's files say about it.
struct ModelFacts {
  std::string name;          ///< as the file calls it; untrusted
  std::string architecture;  ///< "llama", "qwen3_moe"; untrusted
  bool is_gguf = false;

  double parameters = 0;
  double weights_bytes = 0;         ///< as they lie in the files
  bool weights_are_counted = true;  ///< false: no weights were there to count; derived from the configuration
  std::map<std::string, double> bytes_by_type;  ///< of the weights: "Q4_K", "BF16"
  /// The table of input embeddings. llama.cpp leaves it in host memory.
  double input_embedding_bytes = 0;
  bool has_output_matrix = true;  ///< false: the input embeddings serve as the output, too

  std::size_t layers = 0;
  double hidden = 0;
  double heads = 0;
  double kv_heads = 0;      ///< of the layer with the most
  double feed_forward = 0;  ///< of a dense layer, or of the experts that one token uses together
  bool is_gated = true;     ///< the feed-forward has a gate beside its up projection
  double vocabulary = 0;
  double experts = 0;  ///< per layer; 0: dense
  double trained_context = 0;
  std::vector<CacheLayer> cache;
  std::vector<std::string> left_out;  ///< parts of this model that the figures do not hold, for people
};

/// The bytes that the caches of `sequences` sequences of `context` tokens take, at `bytes_per_element`, on one of
/// `shards` GPUs. Heads that cannot be divided are kept on each. Pure.
double cache_bytes(const ModelFacts& model, double context, double sequences, double bytes_per_element, double shards);

/// The bytes that one more token takes where no window is full: the cell of servers' own arithmetic. Pure.
double cache_bytes_per_token(const ModelFacts& model, double bytes_per_element, double shards);

}  // namespace vramtrack::sizing

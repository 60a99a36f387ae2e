#include "sizing/model.hpp"

#include <algorithm>

namespace vramtrack::sizing {
namespace {

/// The part of a layer's cache on one shard: whole heads, at least one.
double part_of(const ModelFacts& model, const CacheLayer& layer, double shards) {
  if (layer.is_shared || shards <= 1) return 1;
  const double heads = std::max(1.0, model.kv_heads);
  return std::max(1.0, std::min(heads, heads / shards)) / heads;
}

}  // namespace

std::uint64_t whole(double size) {
  constexpr double kMost = 1e18;
  return size > 0 ? static_cast<std::uint64_t>(std::min(size, kMost)) : 0;
}

double cache_bytes(const ModelFacts& model, double context, double sequences, double bytes_per_element, double shards) {
  double elements = 0;
  for (const CacheLayer& layer : model.cache) {
    const double tokens = layer.window_tokens > 0 ? std::min(context, layer.window_tokens) : context;
    elements += layer.elements_per_token * tokens * part_of(model, layer, shards);
  }
  return elements * sequences * bytes_per_element;
}

double cache_bytes_per_token(const ModelFacts& model, double bytes_per_element, double shards) {
  double elements = 0;
  for (const CacheLayer& layer : model.cache) elements += layer.elements_per_token * part_of(model, layer, shards);
  return elements * bytes_per_element;
}

}  // namespace vramtrack::sizing

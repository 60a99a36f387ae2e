#include "explain/kv_cache.hpp"

#include <fmt/format.h>

#include <cmath>

namespace vramtrack::explain {
namespace {

constexpr std::string_view kShare = "--gpu-memory-utilization";

/// The figures of an engine, completed by values that follow from them.
struct Engine {
  std::optional<double> total, budget, fraction, weights, kv_cache, missing, needed, tokens, fit;

  explicit Engine(const Figures& figures)
      : total(figures.get(Figure::total)),
        budget(figures.get(Figure::budget)),
        fraction(figures.get(Figure::fraction)),
        weights(figures.get(Figure::weights)),
        kv_cache(figures.get(Figure::kv_cache)),
        missing(figures.get(Figure::missing)),
        needed(figures.get(Figure::needed)),
        tokens(figures.get(Figure::tokens)),
        fit(figures.get(Figure::tokens_fit)) {
    if (!total && budget && fraction && *fraction > 0) total = *budget / *fraction;
    if (!budget && total && fraction) budget = *total * *fraction;
    // The cache grows with the length of the request.
    if (tokens && !fit && needed && kv_cache && *needed > 0) fit = std::floor(*tokens * *kv_cache / *needed);
  }

  [[nodiscard]] bool is_about_length() const { return tokens && fit && *fit < *tokens; }

  /// The amount by which the budget is short; nullopt: unknown.
  [[nodiscard]] std::optional<double> short_of() const {
    if (needed && kv_cache) return *needed - *kv_cache;
    if (is_about_length() && kv_cache && *fit > 0) return *kv_cache * (*tokens / *fit - 1);
    if (!missing && weights && budget && *weights > *budget) return *weights - *budget;
    return missing;
  }
  /// The smallest share that would suffice; 1 and more: the device is too small.
  [[nodiscard]] std::optional<double> least_share() const {
    if (weights && total && *total > 0 && *weights >= *total) return *weights / *total;
    const auto more = short_of();
    if (!more || !total || !fraction || *total <= 0) return std::nullopt;
    return std::ceil((*fraction + *more / *total) * 100) / 100;
  }

  [[nodiscard]] std::string budget_words() const {
    if (!budget) return "";
    std::string out = fmt::format("; vLLM may take {}", size_words(*budget));
    if (fraction && total) out += fmt::format(" ({:.2f} of the device's {})", *fraction, size_words(*total));
    if (weights && *weights > *budget)
      out += fmt::format(", and the model's weights alone take {}", size_words(*weights));
    else if (weights)
      out += fmt::format(", and the model's weights take {} of them", size_words(*weights));
    return out;
  }
  [[nodiscard]] std::string share_words() const {
    const std::string now = fraction ? fmt::format(" (now {:.2f})", *fraction) : "";
    const auto least = least_share();
    if (!least) return fmt::format("raise {}{}", kShare, now);
    if (*least < 1) return fmt::format("raise {} to {:.2f} or more{}", kShare, *least, now);
    return "";
  }
};

bool is_without_cache(const Failure& f) {
  return f.wording->name == "vllm_cache" || f.figures.get(Figure::missing);
}
bool is_at_start(const Failure& f) {
  return f.wording->name == "vllm_start";
}

}  // namespace

Answer kv_cache_diagnosis(const Failure& f) {
  const Engine e(f.figures);
  if (e.is_about_length()) {
    if (e.needed && e.kv_cache)
      return Diagnosis{
          Cause::too_big,
          fmt::format("one request of {:.0f} tokens needs {} of KV cache, and {} are left for it: enough "
                      "for {:.0f} tokens{}",
                      *e.tokens, size_words(*e.needed), size_words(*e.kv_cache), *e.fit, e.budget_words())};
    return Diagnosis{Cause::too_big, fmt::format("one request of {:.0f} tokens does not fit into the KV cache, which "
                                                 "holds {:.0f}{}",
                                                 *e.tokens, *e.fit, e.budget_words())};
  }
  if (!is_without_cache(f) || (!e.budget && !e.missing && !e.weights)) return std::nullopt;
  const bool fits_nowhere = e.least_share().value_or(0) >= 1;
  std::string because = "nothing is left for the KV cache";
  if (e.missing && *e.missing > 0) because += fmt::format(": {} are missing before it", size_words(*e.missing));
  because += e.budget_words();
  if (!e.budget && e.weights) because += fmt::format("; the model's weights take {}", size_words(*e.weights));
  return Diagnosis{fits_nowhere ? Cause::too_big : Cause::limit, because};
}

std::string kv_cache_step(const Failure& f) {
  const Engine e(f.figures);
  if (is_at_start(f)) {
    const auto free = f.figures.get(Figure::free);
    if (!free || !e.total || *e.total <= 0) return "";
    const double share = std::floor(*free / *e.total * 100) / 100;
    std::string others =
        fmt::format("end what holds the other {} (vramtrack holders)", size_words(std::max(0.0, *e.total - *free)));
    // A share helps only if it holds the weights.
    if (share <= 0 || (e.weights && *e.weights >= *free)) return others;
    return fmt::format("{}, or set {} to {:.2f} or less{}", others, kShare, share,
                       e.fraction ? fmt::format(" (now {:.2f})", *e.fraction) : "");
  }
  if (e.is_about_length()) {
    const std::string share = e.share_words();
    const std::string length = *e.fit >= 1 ? fmt::format("set --max-model-len to {:.0f} or less", *e.fit) : "";
    std::string out = length;
    if (!share.empty()) out += (out.empty() ? "" : ", or ") + share;
    if (length.empty() && !share.empty()) out += ", or take a smaller or quantized model";
    const bool is_too_small = share.empty();
    const std::string more = "more devices (--tensor-parallel-size)";
    if (is_too_small)
      out += fmt::format("{}for {:.0f} tokens this device is too small: take {}", out.empty() ? "" : "; ", *e.tokens,
                         more);
    return out;
  }
  if (is_without_cache(f)) {
    const std::string share = e.share_words();
    const std::string smaller = "take a smaller or quantized model, or more devices (--tensor-parallel-size)";
    return share.empty() ? smaller : fmt::format("{}, or {}", share, smaller);
  }
  if (f.wording->name == "vllm_wake")
    return "let what ran while it slept give back its memory before wake_up; vramtrack holders shows who holds it";
  return "";
}

}  // namespace vramtrack::explain

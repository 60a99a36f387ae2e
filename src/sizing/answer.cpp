#include "sizing/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/format.hpp"
#include "core/units.hpp"

namespace vramtrack::sizing {
namespace {

/// llama.cpp's --fit leaves this much free on each GPU, and changes contexts in steps.
constexpr double kLlamaMargin = 1024 * kMiB;
constexpr double kLlamaStep = 256;
/// The number of tokens in one of vLLM's blocks.
constexpr double kBlock = 16;
/// Nobody needs less context than this.
constexpr double kLeastContext = 512;

Fits judge(const Need& need, double free_bytes) {
  if (need.high_bytes() <= free_bytes) return Fits::yes;
  return need.low_bytes() > free_bytes ? Fits::no : Fits::unsure;
}

double floor_to(double value, double step) {
  return std::max(0.0, std::floor(value / step) * step);
}

/// The largest multiple of `step` up to `most` for which `fits`; 0: none. `fits` must be monotonic.
double largest(double most, double step, const std::function<bool(double)>& fits) {
  double low = 0;
  double high = std::floor(most / step);
  while (low < high) {
    const double middle = std::ceil((low + high) / 2);
    if (fits(middle * step))
      low = middle;
    else
      high = middle - 1;
  }
  return low * step;
}

class Changes {
 public:
  Changes(const ModelFacts& model, const Request& request, const Room& room)
      : model_(model), request_(request), room_(room) {}

  std::vector<Change> find() {
    if (request_.training)
      add_training(*request_.training);
    else
      add_serving();
    add_numbers();
    const bool is_refused = !allows(request_);
    for (const double shards : {1.0, 2.0, 4.0, 8.0, 16.0}) {
      if (shards == request_.shards || (shards < request_.shards && !is_refused)) continue;
      Request other = request_;
      other.shards = shards;
      if (add(shards == 1 ? "one such GPU" : fmt::format("{:.0f} such GPUs, with tensors divided among them", shards),
              other))
        break;
    }
    return std::move(found_);
  }

 private:
  /// llama.cpp assigns whole layers to each GPU, so any number of GPUs is allowed.
  [[nodiscard]] bool allows(const Request& other) const {
    return model_.is_gguf || refusal(model_, other.shards).empty();
  }
  [[nodiscard]] bool fits(const Request& other) const {
    return allows(other) && need_of(model_, other).high_bytes() <= room_.free_bytes;
  }
  bool add(std::string what, const Request& other) {
    if (!fits(other)) return false;
    const Need need = need_of(model_, other);
    found_.push_back({std::move(what), need.high_bytes()});
    return true;
  }
  void add_numbers() {
    Request other = request_;
    const double context = largest(request_.context_tokens, kLlamaStep, [&](double tokens) {
      other.context_tokens = tokens;
      return fits(other);
    });
    other.context_tokens = context;
    if (context >= kLeastContext)
      add(fmt::format("a context of {} tokens instead of {}", format_number(whole(context)),
                      format_number(whole(request_.context_tokens))),
          other);
    other = request_;
    const double sequences = largest(request_.sequences, 1, [&](double n) {
      other.sequences = n;
      return fits(other);
    });
    other.sequences = sequences;
    if (sequences >= 1) add(fmt::format("a batch of {:.0f} instead of {:.0f}", sequences, request_.sequences), other);
  }
  void add_serving() {
    if (cache_bytes_per_element(model_, request_) > 1.1) {
      Request other = request_;
      other.cache_element_bytes = model_.is_gguf ? 34.0 / 32 : 1;
      add(model_.is_gguf ? "an 8-bit cache (q8_0)" : "an 8-bit cache (fp8)", other);
    }
    const double bits =
        request_.weight_bits.value_or(model_.parameters > 0 ? 8 * model_.weights_bytes / model_.parameters : 16);
    struct Kind {
      std::string_view name;
      std::string_view words;
    };
    for (const Kind& kind : {Kind{"int8", "8-bit weights"}, Kind{"q4", "4-bit weights"}}) {
      Request other = request_;
      other.weight_bits = *weight_type_bits(kind.name);
      if (*other.weight_bits < 0.9 * bits && add(fmt::format("{} ({})", kind.words, kind.name), other)) break;
    }
  }
  void add_training(const Training& now) {
    const auto change = [&](std::string what, auto edit) {
      Request other = request_;
      edit(*other.training);
      add(std::move(what), other);
    };
    if (!now.has_checkpoints)
      change("activation checkpointing (checkpoints)", [](Training& t) { t.has_checkpoints = true; });
    if (now.optimizer->states * now.optimizer->state_bytes > 2)
      change("an 8-bit optimizer (adamw8bit)", [](Training& t) { t.optimizer = find_optimizer("adamw8bit"); });
    if (now.optimizer->states > 0)
      change("an optimizer with almost no state (adafactor)",
             [](Training& t) { t.optimizer = find_optimizer("adafactor"); });
    if (now.precision != Training::Precision::pure)
      change("weights and optimizer in 16 bits only (pure-bf16)",
             [](Training& t) { t.precision = Training::Precision::pure; });
    if (!now.is_lora)
      change("LoRA with activation checkpointing (lora,checkpoints)",
             [](Training& t) { t.is_lora = t.has_checkpoints = true; });
  }

  const ModelFacts& model_;
  const Request& request_;
  const Room& room_;
  std::vector<Change> found_;
};

double high_of(const Need& need, std::string_view name) {
  const auto at = std::find_if(need.parts.begin(), need.parts.end(), [name](const Part& p) { return p.name == name; });
  return at == need.parts.end() ? 0 : at->high_bytes;
}

double low_of(const Need& need, std::string_view name) {
  const auto at = std::find_if(need.parts.begin(), need.parts.end(), [name](const Part& p) { return p.name == name; });
  return at == need.parts.end() ? 0 : at->low_bytes;
}

StartRule llama_rule(const ModelFacts& model, const Request& request, const Need& need, const Room& room) {
  StartRule out{.server = "llama.cpp", .formula = {}};
  const double weights = weights_on_gpu_bytes(model, request);
  const double working = low_of(need, "working memory");
  out.cache_bytes = std::max(0.0, room.free_bytes - kLlamaMargin - weights - working);
  const double most = model.trained_context > 0 ? model.trained_context * request.sequences : 1e7;
  out.tokens = largest(most, kLlamaStep, [&](double tokens) {
    return cache_bytes(model, tokens / request.sequences, request.sequences, cache_bytes_per_element(model, request),
                       request.shards) <= out.cache_bytes;
  });
  out.starts = weights + working + kLlamaMargin < room.free_bytes;
  out.formula = fmt::format(
      "{} free - {} margin - {} weights - {} working memory; at most the {} tokens of its training{}",
      format_bytes(room.free_bytes), format_bytes(kLlamaMargin), format_bytes(weights), format_bytes(working),
      format_number(whole(model.trained_context)), out.starts ? "" : "; it would leave layers to the CPU");
  return out;
}

StartRule vllm_rule(const ModelFacts& model, const Request& request, const Need& need, const Room& room, double share) {
  StartRule out{.server = "vLLM", .formula = {}};
  const double total = room.total_bytes.value_or(room.free_bytes);
  const double weights = weights_on_gpu_bytes(model, request);
  const double rest = high_of(need, "working memory") + kLlamaMargin / 4;
  const double cell = cache_bytes_per_token(model, cache_bytes_per_element(model, request), request.shards);
  out.cache_bytes = std::max(0.0, share * total - weights - rest);
  out.tokens = cell > 0 ? floor_to(out.cache_bytes / cell, kBlock) : 0;
  out.starts = share * total <= room.free_bytes && out.tokens >= request.context_tokens;
  out.formula =
      fmt::format("{:.2f} x {} - {} weights - about {} for activations and libraries, / {} a token{}", share,
                  format_bytes(total), format_bytes(weights), format_bytes(rest), format_size(whole(cell)),
                  share * total > room.free_bytes
                      ? fmt::format("; it refuses to start, since only {} is free", format_bytes(room.free_bytes))
                  : out.tokens < request.context_tokens ? "; it refuses to start, since one sequence would not fit"
                                                        : "");
  return out;
}

StartRule sglang_rule(const ModelFacts& model, const Request& request, const Room& room, double share) {
  StartRule out{.server = "SGLang", .formula = {}};
  const double weights = weights_on_gpu_bytes(model, request);
  const double cell = cache_bytes_per_token(model, cache_bytes_per_element(model, request), request.shards);
  out.cache_bytes = std::max(0.0, room.free_bytes - weights - room.free_bytes * (1 - share));
  out.tokens = cell > 0 ? floor_to(out.cache_bytes / cell, 1) : 0;
  out.starts = out.tokens > 0;
  out.formula =
      fmt::format("{} free after the weights - {:.2f} x {} free before, / {} a token{}",
                  format_bytes(std::max(0.0, room.free_bytes - weights)), 1 - share, format_bytes(room.free_bytes),
                  format_size(whole(cell)), out.starts ? "" : "; it refuses to start");
  return out;
}

}  // namespace

std::string_view to_string(Fits fits) {
  constexpr std::array<std::string_view, 3> kNames = {"yes", "no", "unsure"};
  return kNames[static_cast<std::size_t>(fits)];
}

std::string refusal(const ModelFacts& model, double shards) {
  const auto leaves_rest = [shards](double number) { return std::fmod(number, shards) != 0; };
  const auto words = [shards](double number, std::string_view what) {
    return fmt::format("{} {} cannot be divided by {:.0f}", format_number(whole(number)), what, shards);
  };
  if (shards <= 1) return {};
  if (model.heads > 0 && leaves_rest(model.heads)) return words(model.heads, "attention heads");
  // Fewer key-value heads than GPUs are replicated, each to the same number of GPUs.
  if (model.kv_heads > 0 && leaves_rest(model.kv_heads) && std::fmod(shards, model.kv_heads) != 0)
    return words(model.kv_heads, "heads of keys and values");
  if (model.experts == 0 && model.feed_forward > 0 && leaves_rest(model.feed_forward))
    return words(model.feed_forward, "rows of the feed-forward layers");
  return {};
}

std::string_view agreement(const Need& need, const Measured& measured) {
  if (measured.most_bytes > need.high_bytes()) return "above";
  return measured.most_bytes < need.low_bytes() ? "below" : "within";
}

void check(Answer& answer, const Room& room, Measured measured) {
  const bool has_room = measured.most_bytes <= room.free_bytes;
  answer.measured = std::move(measured);
  if (!answer.refused.empty()) return;
  if (answer.fits == Fits::unsure)
    answer.fits = has_room ? Fits::yes : Fits::no;
  else if ((answer.fits == Fits::yes) != has_room)
    answer.fits = Fits::unsure;
  if (answer.fits == Fits::yes) answer.changes.clear();
}

Answer answer(const ModelFacts& model, const Request& request, const Room& room, std::optional<double> utilization) {
  Answer out;
  out.need = need_of(model, request);
  out.refused = refusal(model, request.shards);
  const bool is_possible = out.refused.empty() || model.is_gguf;
  out.fits = is_possible ? judge(out.need, room.free_bytes) : Fits::no;
  if (out.fits != Fits::yes) out.changes = Changes(model, request, room).find();
  if (request.training || model.cache.empty()) return out;
  if (model.is_gguf) {
    out.rules.push_back(llama_rule(model, request, out.need, room));
  } else {
    out.rules.push_back(vllm_rule(model, request, out.need, room, utilization.value_or(kVllmUtilization)));
    out.rules.push_back(sglang_rule(model, request, room, utilization.value_or(kSglangFraction)));
    if (!is_possible)
      for (StartRule& rule : out.rules) {
        rule.starts = false;
        rule.formula = "it refuses to start, since " + out.refused;
        rule.tokens = rule.cache_bytes = 0;
      }
  }
  return out;
}

}  // namespace vramtrack::sizing

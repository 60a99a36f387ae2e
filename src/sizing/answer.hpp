// Answer: whether a model fits into the free memory, which changes would make it fit, and how many tokens a server
// could cache at its start. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sizing/need.hpp"

namespace vramtrack::sizing {

/// The memory of one GPU.
struct Room {
  double free_bytes = 0;
  std::optional<double> total_bytes;
};

enum class Fits : std::uint8_t { yes, no, unsure };
std::string_view to_string(Fits fits);

/// A single change that is certain to make the model fit.
struct Change {
  std::string what;  ///< "a context of 12,288 tokens instead of 32,768"
  double need_bytes = 0;
};

/// A server's memory at its start.
struct StartRule {
  std::string server;
  bool starts = true;
  double cache_bytes = 0;  ///< given to the cache
  double tokens = 0;       ///< that fit into the cache, over all sequences
  std::string formula;     ///< with the numbers, for messages
};

/// The peak need of earlier runs of the given program on one GPU.
struct Measured {
  std::string program;  ///< for messages; untrusted
  std::uint64_t runs = 0;
  double most_bytes = 0;
  std::optional<double> usual_bytes;
};

struct Answer {
  Need need;
  Fits fits = Fits::unsure;
  std::optional<Measured> measured;
  std::string refused;           ///< why tensors cannot be divided among this many GPUs; empty: they can be
  std::vector<Change> changes;   ///< empty if it fits
  std::vector<StartRule> rules;  ///< empty for training
};

/// The shares of memory that vLLM (--gpu-memory-utilization) and SGLang (--mem-fraction-static) use by default.
inline constexpr double kVllmUtilization = 0.92;
inline constexpr double kSglangFraction = 0.88;

/// Why the tensors of `model` cannot be divided among `shards` GPUs, by the checks of Megatron, vLLM and SGLang; empty:
/// they can be. "32 attention heads cannot be divided by 3".
std::string refusal(const ModelFacts& model, double shards);

/// Whether the runs' need lies within the range of the estimate: "within", "above", "below".
std::string_view agreement(const Need& need, const Measured& measured);

/// Compares an answer with runs of the same program: if the headers alone leave it open, the measurement decides; if
/// the two contradict each other, the answer is unsure.
void check(Answer& answer, const Room& room, Measured measured);

/// `utilization` replaces both shares.
Answer answer(const ModelFacts& model, const Request& request, const Room& room,
              std::optional<double> utilization = {});

/// The answer as text, and as one JSON document, schema "vramtrack.fit.v1" (docs/fit.md). `where`: "GPU 0".
std::string answer_text(const Answer& answer, const ModelFacts& model, const Request& request, const Room& room,
                        const std::string& where);
std::string answer_json(const Answer& answer, const ModelFacts& model, const Request& request, const Room& room,
                        const std::string& where);

}  // namespace vramtrack::sizing

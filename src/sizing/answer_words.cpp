// An answer as text and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/json_text.hpp"
#include "sizing/answer.hpp"

namespace vramtrack::sizing {
namespace {

std::string range_words(double low, double high) {
  const std::string first = format_bytes(low);
  const std::string last = format_bytes(high);
  return first == last ? first : fmt::format("{} to {}", first, last);
}

std::string verdict_words(const Answer& answer, const ModelFacts& model, const Request& request, const Room& room,
                          const std::string& where) {
  const double low = answer.need.low_bytes();
  const double high = answer.need.high_bytes();
  const std::string needs =
      fmt::format("it needs {}, and {} are free on {}", range_words(low, high), format_bytes(room.free_bytes), where);
  if (!answer.refused.empty() && !model.is_gguf)
    return fmt::format("no: {}, so tensors cannot be divided among {:.0f} GPUs; on one of them {}", answer.refused,
                       request.shards, needs);
  if (const auto& runs = answer.measured; runs && answer.refused.empty()) {
    const std::string measured = fmt::format("{} of {} needed up to {}", format_count(runs->runs, "earlier run"),
                                             runs->program, format_bytes(runs->most_bytes));
    const bool is_open = low <= room.free_bytes && high > room.free_bytes;
    if (is_open)
      return fmt::format("{}: {}, and {} are free on {}; by its headers alone it needs {}", to_string(answer.fits),
                         measured, format_bytes(room.free_bytes), where, range_words(low, high));
    if (answer.fits == Fits::unsure)
      return fmt::format("unsure: {}, but by its headers it needs {}; {} are free on {}", measured,
                         range_words(low, high), format_bytes(room.free_bytes), where);
  }
  switch (answer.fits) {
    case Fits::yes:
      return fmt::format("yes: {}", needs);
    case Fits::no:
      return fmt::format("no: {}; at least {} are missing", needs, format_bytes(low - room.free_bytes));
    case Fits::unsure:
      return fmt::format("unsure: {}; up to {} may be missing", needs, format_bytes(high - room.free_bytes));
  }
  return needs;
}

std::string model_words(const ModelFacts& model) {
  std::string types;
  for (const auto& [type, bytes] : model.bytes_by_type)
    if (bytes >= 0.01 * model.weights_bytes)
      types += fmt::format("{}{} {:.0f} %", types.empty() ? "" : ", ", type,
                           100 * bytes / std::max(1.0, model.weights_bytes));
  return fmt::format("{}{}{}: {} weights, {} ({}){}, {} layers, trained for {} tokens", model.name,
                     model.name.empty() ? "" : ", ", model.architecture, count_words(model.parameters),
                     format_bytes(model.weights_bytes), types,
                     model.weights_are_counted ? "" : ", derived from its configuration", model.layers,
                     format_number(whole(model.trained_context)));
}

/// Parts that are unknown from the headers, or that these formulas do not cover.
std::vector<std::string> left_out(const ModelFacts& model, const Request& request) {
  std::vector<std::string> out = model.left_out;
  if (request.training) {
    out.emplace_back("fragmentation of the allocator, and buffers of distributed training");
    out.emplace_back("a validation or generation step that keeps more than a training step");
  } else {
    out.emplace_back("images and sound, LoRA adapters, and a draft model for speculative decoding");
    if (model.is_gguf)
      out.push_back(fmt::format("llama.cpp without flash attention (-fa off): {} more",
                                format_bytes(scores_without_flash_bytes(model, request))));
    else
      out.emplace_back("CUDA graphs, which servers capture after startup (0.1 to 2 GiB)");
  }
  if (request.shards > 1) out.emplace_back("buffers for communication between GPUs");
  return out;
}

}  // namespace

std::string answer_text(const Answer& answer, const ModelFacts& model, const Request& request, const Room& room,
                        const std::string& where) {
  std::string out = verdict_words(answer, model, request, room, where) + "\n\n" + model_words(model) + "\n\n";
  for (const Part& part : answer.need.parts)
    out += fmt::format("  {}  {}\n      = {}\n", fit(range_words(part.low_bytes, part.high_bytes), 23), part.name,
                       part.formula);
  if (const auto& runs = answer.measured)
    out += fmt::format("\nEarlier runs of {}: {}{}, at most {}: {} the estimate\n", runs->program, runs->runs,
                       runs->usual_bytes ? ", usually " + format_bytes(*runs->usual_bytes) : "",
                       format_bytes(runs->most_bytes), agreement(answer.need, *runs));
  if (!answer.refused.empty() && model.is_gguf)
    out += fmt::format("\nllama.cpp gives each GPU whole layers. Servers that divide tensors refuse {:.0f} GPUs: {}.\n",
                       request.shards, answer.refused);
  if (answer.fits != Fits::yes) {
    out += answer.changes.empty() ? "\nNo single change makes it fit for sure; combine several, or use more GPUs.\n"
                                  : "\nEach of these alone makes it fit:\n";
    for (const Change& change : answer.changes)
      out += fmt::format("  {} ({} at most)\n", change.what, format_bytes(change.need_bytes));
  }
  if (!answer.rules.empty()) out += "\nWhat servers have room for at startup:\n";
  for (const StartRule& rule : answer.rules)
    out += fmt::format("  {} {} tokens in all, in {}\n      = {}\n", fit(rule.server, 10),
                       fit_right(format_number(whole(rule.tokens)), 11), format_bytes(rule.cache_bytes), rule.formula);
  out += "\nNot counted:\n";
  for (const std::string& one : left_out(model, request)) out += fmt::format("  {}\n", one);
  return printable_lines(out);
}

std::string answer_json(const Answer& answer, const ModelFacts& model, const Request& request, const Room& room,
                        const std::string& where) {
  JsonText out;
  out.begin_object().field("schema", "vramtrack.fit.v1").field("fits", to_string(answer.fits)).field("where", where);
  out.field("refused", answer.refused);
  out.field("free_bytes", whole(room.free_bytes)).field("need_low_bytes", whole(answer.need.low_bytes()));
  out.field("need_high_bytes", whole(answer.need.high_bytes()));
  out.key("model").begin_object().field("name", model.name).field("architecture", model.architecture);
  out.field("parameters", whole(model.parameters)).field("weights_bytes", whole(model.weights_bytes));
  out.field("weights_are_counted", model.weights_are_counted).field("layers", model.layers);
  out.field("trained_context", whole(model.trained_context)).end_object();
  out.key("parts").begin_array();
  for (const Part& part : answer.need.parts) {
    out.begin_object()
        .field("name", part.name)
        .field("low_bytes", whole(part.low_bytes))
        .field("high_bytes", whole(part.high_bytes));
    out.field("formula", part.formula).end_object();
  }
  out.end_array().key("earlier_runs");
  if (const auto& runs = answer.measured) {
    out.begin_object().field("program", runs->program).field("runs", runs->runs);
    out.field("most_bytes", whole(runs->most_bytes)).key("usual_bytes");
    if (runs->usual_bytes)
      out.value(whole(*runs->usual_bytes));
    else
      out.null();
    out.field("estimate", agreement(answer.need, *runs)).end_object();
  } else {
    out.null();
  }
  out.key("changes").begin_array();
  for (const Change& change : answer.changes)
    out.begin_object().field("what", change.what).field("need_bytes", whole(change.need_bytes)).end_object();
  out.end_array().key("start").begin_array();
  for (const StartRule& rule : answer.rules) {
    out.begin_object()
        .field("server", rule.server)
        .field("starts", rule.starts)
        .field("cache_bytes", whole(rule.cache_bytes));
    out.field("tokens", whole(rule.tokens)).field("formula", rule.formula).end_object();
  }
  out.end_array().key("not_counted").begin_array();
  for (const std::string& one : left_out(model, request)) out.value(one);
  out.end_array().end_object();
  return printable_json(out.text()) + '\n';
}

}  // namespace vramtrack::sizing

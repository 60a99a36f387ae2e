// fit: whether a model fits into the free memory, before it is started.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/commands.hpp"
#include "cli/earlier_runs.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "core/limit_end.hpp"
#include "live/ledger_reader.hpp"
#include "sizing/answer.hpp"
#include "sizing/model_file.hpp"
#include "store/store.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kFits = 0;
constexpr int kDoesNotFit = 1;
constexpr int kFailed = 2;
constexpr int kUnsure = 3;
/// A usual context length, for when none is given and the model was trained for more.
constexpr double kUsualContext = 8192;

struct FitOptions {
  ConfigRequest config;
  std::string model;
  std::optional<int> gpu;
  std::optional<std::uint64_t> memory_bytes;
  sizing::Request request;
  std::optional<double> utilization;
  std::vector<std::string> command;
  std::vector<std::string> traces;
  std::string store;
  bool json = false;
};

/// Reads "32k" as 32768 tokens, and "8192" as it is.
SetWord tokens(double& into) {
  return [&into](const std::string& word) -> Status {
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(word.data() + word.size() - end));
    const double factor = unit == "k" || unit == "K" ? 1024 : unit == "m" || unit == "M" ? 1024 * 1024 : 1;
    constexpr double kMost = 1e9;
    if (error != std::errc{} || (!unit.empty() && factor == 1))
      return fail(fmt::format("'{}' is not a number of tokens; write, for example, 8192 or 32k", word));
    if (!(number > 0)) return fail("must be greater than zero");
    if (number * factor > kMost) return fail("more than a billion tokens");
    into = std::floor(number * factor);
    return {};
  };
}

SetWord count(double& into, double most) {
  return whole_number([&into](std::uint64_t n) { into = static_cast<double>(n); }, 1, static_cast<std::uint64_t>(most));
}

struct Place {
  sizing::Room room;
  std::string name;
};

/// The GPU to use: the one named, or the one with the most free memory.
Result<Place> place_here(const FitOptions& options, const SourcesConfig& config, Console& console) {
  LedgerReader reader(config, [&console](const std::string& text) { console.warn(text); });
  if (!reader.is_open())
    return fail(fmt::format("no GPU found: {}; give the memory of the GPU you mean: --memory 24GiB", reader.reasons()));
  std::optional<Place> best;
  const Ledger ledger = reader.look();
  for (const DeviceLedger& one : ledger.devices) {
    if (options.gpu && one.device.index != options.gpu) continue;
    if (!one.used_bytes || !one.device.capacity_bytes) continue;
    const double total = static_cast<double>(*one.device.capacity_bytes);
    double free = std::max(0.0, total - static_cast<double>(*one.used_bytes) - static_cast<double>(one.reserved_bytes));
    std::string limit;
    const std::vector<Walled> others = walled_lines(one);
    for (const Wall& wall : reader.own_walls(one.device.id)) {
      const double left = end_by_limit(0, static_cast<double>(wall.bytes), used_of(others, wall.name));
      if (left >= free) continue;
      free = left;
      limit = fmt::format(" (limited by {})", wall.name);
    }
    if (best && best->room.free_bytes >= free) continue;
    const std::string number = one.device.index ? std::to_string(*one.device.index) : one.device.id;
    best = Place{{free, total}, fmt::format("GPU {}{}", number, limit)};
  }
  if (best) return *best;
  if (options.gpu)
    return fail(fmt::format("there is no GPU {} here whose free memory is known; 'vramtrack doctor' lists the GPUs",
                            *options.gpu));
  return fail("no GPU here reports its free memory; give the memory of the GPU you mean: --memory 24GiB");
}

sizing::Measured measured(const EarlierRuns& runs) {
  sizing::Measured out{
      .program = runs.name, .runs = runs.traced_bytes.size(), .most_bytes = runs.most_bytes(), .usual_bytes = {}};
  if (runs.watched) {
    out.runs += runs.watched->runs;
    out.usual_bytes = need_of(*runs.watched).usual_bytes;
  }
  return out;
}

int fit_model(const FitOptions& given, const LayeredConfig& layers, Console& console) {
  FitOptions options = given;
  if (const Status traces = check_traces(options.command, options.traces); !traces) {
    console.error(traces.error().message);
    return kFailed;
  }
  const auto model = sizing::read_model(options.model);
  if (!model) {
    console.error("cannot read the model: " + model.error().message);
    return kFailed;
  }
  sizing::Request& request = options.request;
  if (request.context_tokens == 0)
    request.context_tokens =
        model->trained_context > 0 ? std::min(model->trained_context, kUsualContext) : kUsualContext;
  Place place;
  if (options.memory_bytes) {
    const auto bytes = static_cast<double>(*options.memory_bytes);
    place = {{bytes, bytes}, "the GPU"};
  } else {
    const auto here = place_here(options, layers.config().sources, console);
    if (!here) {
      console.error(here.error().message);
      return kFailed;
    }
    place = *here;
  }
  if (model->trained_context > 0 && request.context_tokens > model->trained_context)
    console.warn(fmt::format("the model was trained for {} tokens, fewer than the context",
                             format_number(static_cast<std::uint64_t>(model->trained_context))));
  sizing::Answer answer = sizing::answer(*model, request, place.room, options.utilization);
  if (!options.command.empty()) {
    const std::string store = options.store.empty() ? store_path(layers.config().store) : options.store;
    const auto runs = earlier_runs(options.command, store, options.traces);
    if (!runs) {
      console.error("cannot compare with earlier runs: " + runs.error().message);
      return kFailed;
    }
    if (!runs->any())
      console.warn("no finished run of this command is known, so the answer rests on the model's headers alone");
    else
      sizing::check(answer, place.room, measured(*runs));
  }
  console.write(options.json ? sizing::answer_json(answer, *model, request, place.room, place.name)
                             : sizing::answer_text(answer, *model, request, place.room, place.name));
  switch (answer.fits) {
    case sizing::Fits::yes:
      return kFits;
    case sizing::Fits::no:
      return kDoesNotFit;
    case sizing::Fits::unsure:
      break;
  }
  return kUnsure;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<FitOptions>();
  sizing::Request& request = options->request;
  arguments
      .operand("MODEL", "A GGUF file, a folder with config.json and safetensors files, or a config.json",
               text(options->model))
      .required()
      .file();
  constexpr std::uint64_t kMostGpus = 4095;
  arguments.option(
      "--gpu", "N", "Compare with what is free on this GPU (default: the one with the most free memory)",
      whole_number([options = options.get()](std::uint64_t n) { options->gpu = static_cast<int>(n); }, 0, kMostGpus));
  arguments.option("--memory", "SIZE", "Compare with this much free memory, on a GPU that is not here: 24GiB",
                   capacity(options->memory_bytes));
  arguments.option("--context", "TOKENS",
                   "Length of each sequence: 8192, 32k (default: 8192, or what it was trained for)",
                   tokens(request.context_tokens));
  arguments.option("--batch", "COUNT", "Sequences at a time (default 1)", count(request.sequences, 1e6));
  arguments.option("--shards", "COUNT", "Number of GPUs that each tensor is divided among (default 1)",
                   count(request.shards, 1024));
  arguments.option("--cache", "TYPE", "Type of the cache: f16 (default; f32 if the weights are f32), fp8, q8_0, q4_0",
                   [&request](const std::string& word) -> Status {
                     const auto bytes = sizing::cache_type_bytes(word);
                     if (!bytes) return tl::unexpected(bytes.error());
                     request.cache_element_bytes = *bytes;
                     return {};
                   });
  arguments.option("--weights", "TYPE",
                   "Estimate as if the weights were bf16, int8 or q4 (default: as they are in the files)",
                   [&request](const std::string& word) -> Status {
                     const auto bits = sizing::weight_type_bits(word);
                     if (!bits) return tl::unexpected(bits.error());
                     request.weight_bits = *bits;
                     return {};
                   });
  arguments.option("--train", "HOW",
                   "Estimate training: optimizer, precision, checkpoints, lora, for example adamw,bf16",
                   [&request](const std::string& word) -> Status {
                     const auto training = sizing::parse_training(word);
                     if (!training) return tl::unexpected(training.error());
                     request.training = *training;
                     return {};
                   });
  arguments.option("--utilization", "SHARE",
                   "Share of the memory that a server takes (default: vLLM 0.92, SGLang 0.88)",
                   [options = options.get()](const std::string& word) -> Status {
                     double share = 0;
                     if (const Status read = number(share, 0.01, 1)(word); !read) return read;
                     options->utilization = share;
                     return {};
                   });
  arguments
      .operands("COMMAND", "The program that will run it: its earlier runs are compared with the estimate",
                text(options->command))
      .program();
  arguments
      .repeated("--trace", "FILE", "A 'vramtrack run' trace of the command; its peak counts, too",
                text(options->traces))
      .file();
  arguments.option("--store", "FILE", "The store with the earlier runs (default: this user's)", text(options->store))
      .file();
  arguments.json("Print one JSON document (docs/fit.md)", options->json);
  add_sources(arguments, options->config);
  add_config(arguments, options->config);
  return configured<FitOptions>(options, fit_model);
}

}  // namespace

const CommandInfo fit_command{"fit",
                              "Estimate whether a model fits into the free memory of a GPU, from its headers alone",
                              "Examples:\n"
                              "  vramtrack fit model.gguf --context 32k\n"
                              "  vramtrack fit ~/models/Llama-3.1-8B --gpu 0 --context 32k --batch 8\n"
                              "  vramtrack fit config.json --memory 80GiB --train adamw,bf16 --batch 4 --context 4096\n"
                              "  vramtrack fit ~/models/Llama-3.1-8B -- vllm serve ~/models/Llama-3.1-8B\n"
                              "Nothing is fetched, and nothing is started.\n"
                              "Exit: 0 it fits, 1 it does not, 3 unsure, 2 failed.",
                              declare};

}  // namespace vramtrack::cli

#include "explain/advice.hpp"

#include <fmt/format.h>

#include "core/printable.hpp"
#include "core/units.hpp"
#include "explain/cause.hpp"
#include "explain/kv_cache.hpp"
#include "explain/platform.hpp"
#include "explain/processes.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {

namespace {

/// The setting to lower, in the words of a program whose options divide the memory.
constexpr struct {
  std::string_view program;
  std::string_view advice;
} kOptions[] = {
    {"vLLM",
     "lower --gpu-memory-utilization, --max-num-seqs or --max-model-len: vLLM fills its share with the KV cache, and "
     "the "
     "rest must hold everything else; if it failed while loading the model, use a quantized model or more devices"},
    {"SGLang",
     "lower --mem-fraction-static, --cuda-graph-max-bs or --chunked-prefill-size: SGLang fills its share with "
     "weights and KV cache, and the rest must hold everything else; if it failed while loading the model, use a "
     "quantized model or more devices"},
    {"TensorRT-LLM",
     "lower what the KV cache takes of the free memory (free_gpu_memory_fraction or max_tokens of kv_cache_config), "
     "max_batch_size, max_num_tokens or max_seq_len, or take a quantized model or more devices"},
    {"ComfyUI",
     "use a smaller image or video, fewer frames, tiled VAE nodes, a quantized model (GGUF, fp8), or start ComfyUI "
     "with --lowvram"},
    {"Stable Diffusion webui", "use a smaller image or batch, or start the web UI with --medvram or --lowvram"},
    {"DeepSpeed",
     "use a smaller micro batch or sequence, activation checkpointing, a higher ZeRO stage (3 divides the weights, "
     "too), or offload_optimizer and offload_param"},
    {"llama.cpp/ggml",
     "put fewer layers on the GPU (-ngl), take a shorter context (-c), a smaller batch (-ub), a quantized KV cache "
     "(--cache-type-k q8_0) or a smaller quantization of the model"},
    {"Blender",
     "use smaller textures, less geometry (subdivision, hair, volumes) or a lower resolution, or render on the CPU"},
    {"LM Studio",
     "shorten the context first (the KV cache grows with it) or take a smaller quantization; relax the guardrails of "
     "model loading only where the machine has as much"},
    {"Ollama",
     "take a shorter context (num_ctx), fewer layers on the GPU (num_gpu) or a smaller quantization of the model"},
};

/// Empty: no program with its own memory options caused it.
std::string_view options_of(const Failure& f) {
  for (const auto& known : kOptions)
    if (known.program == f.runs_in || known.program == f.wording->program) return known.advice;
  return {};
}

/// ", or choose another device with CUDA_VISIBLE_DEVICES"
std::string other_device(const Failure& f) {
  const std::string_view variable = platform_of(f).devices;
  return variable.empty() ? "" : fmt::format(", or choose another device with {}", variable);
}

constexpr std::string_view kLess =
    "a smaller batch, sequence or image, a lower precision, more devices, and in training activation checkpointing";
/// For unknown programs, if nothing shows that they compute with tensors.
constexpr std::string_view kLessOfRenderer = "smaller textures, less geometry or a lower resolution";
constexpr std::string_view kRenderers = "blender|cycles|redshift|octane|arnold|optix|render|texture|shader|scene";
constexpr std::string_view kOfTensors =
    "torch|tensor|model|batch|train|cudnn|jax|layer|vllm|sglang|onnx|triton|paddle|mindspore|mxnet|deepspeed|llama|"
    "diffusion|transformers|keras|comfyui|nccl|cublas";
constexpr std::string_view kLessOfAny = "a smaller input, resolution or problem, or more devices";

std::string_view less_of(const Failure& f) {
  const std::string text = lower(f.before + f.text + std::string(f.wording->program) + std::string(f.runs_in));
  if (has_any(text, kRenderers)) return kLessOfRenderer;
  return has_any(text, kOfTensors) ? kLess : kLessOfAny;
}

/// For a maximum size that no setting of the program changes.
constexpr std::string_view kInPieces =
    "split the request into pieces that are small enough (tiles, smaller batches, several buffers); where the "
    "bound is a default of the interface (WebGPU: requiredLimits), ask for the device's own when it is opened";

/// The same decision as by_capacity() in cause.cpp.
bool is_kept_from_device(const Failure& f) {
  return f.remarks.capacity > 1.5 * f.figures.get(Figure::total).value_or(f.remarks.capacity);
}

/// The request of a failure that names no size.
constexpr double kAnyPieceBytes = 256 * kMiB;

/// The program's own advice, where it failed.
std::string own_advice(const Failure& f) {
  return fmt::format("what the message itself advises: {}", f.remarks.advised);
}

/// How to watch memory grow, on systems where vramtrack runs.
std::string growth_tool(const Failure& f) {
  const Platform& platform = platform_of(f);
  return platform.has_vramtrack ? "vramtrack run -- PROGRAM" : std::string(platform.tool);
}

/// What a failure's figures say about other processes, if the program's own need is the cause.
std::string own_need_words(const Failure& f) {
  const auto total = f.figures.get(Figure::total);
  const auto free = f.figures.get(Figure::free);
  const auto held =
      f.figures.get(Figure::reserved) ? f.figures.get(Figure::reserved) : f.figures.get(Figure::allocated);
  if (total && free && held)
    if (const double outside = *total - *free - *held - f.figures.get(Figure::unallocated).value_or(0);
        outside > ordinary_outside_bytes(*total))
      return fmt::format("the program's own need, for the most part; {} are held outside its allocator",
                         size_words(outside));
  for (const Figure figure : {Figure::total, Figure::free, Figure::allowed, Figure::allocated, Figure::reserved,
                              Figure::needed, Figure::planned, Figure::asked})
    if (f.figures.get(figure)) return "the program's own need alone";
  return "the program's own need, as far as its message shows: no figure shows what others held";
}

/// If either would have made room: the memory of others, and slightly less of the program's own. Empty: not so.
std::string shared_fault(const Failure& f) {
  constexpr double kMost = 0.75, kLittle = 0.05;
  const auto get = [&f](Figure figure) { return f.figures.get(figure).value_or(0); };
  const double total = get(Figure::total);
  const double missing = get(Figure::needed) - get(Figure::free);
  if (get(Figure::fraction) > 0 && missing > 0 && missing < kLittle * total)
    return fmt::format("both: a share that is set {} too high, and others, who hold {}", size_words(missing),
                       size_words(total - get(Figure::free)));
  const double held = std::max(get(Figure::reserved), get(Figure::allocated));
  if (total <= 0 || held < kMost * total || held > total || !f.others.empty() || is_own_outside(f)) return {};
  return fmt::format("both: this allocator holds {} of {}, and what is held outside it would have been enough",
                     size_words(held), size_words(total));
}

}  // namespace

std::string fault_of(const Failure& f) {
  switch (f.cause) {
    case Cause::leak:
      return "the program: it keeps what it should have released";
    case Cause::fragmentation:
      return "the allocator: the memory is there, in pieces that are too small";
    case Cause::too_big:
      return own_need_words(f);
    case Cause::bad_size:
      return "the program: no memory is short";
    case Cause::full:
      return own_need_words(f) + ": all that it holds, not this request";
    case Cause::limit:
      return f.wording->setting.empty() || is_kept_from_device(f)
                 ? "a limit that was set, not the device"
                 : fmt::format("a limit that was set, not the device: {}", f.wording->setting);
    case Cause::outside:
      if (const std::string both = shared_fault(f); !both.empty()) return both;
      if (!f.remarks.shared.empty() && f.others.empty())
        return "other processes, according to the text: " + f.remarks.shared;
      if (f.used_line > 0)
        return f.others.empty()
                   ? "other processes, by that table, unless it was made while this program ran"
                   : other_processes_words(f.others, f.others.size() == 1
                                                         ? ", by that table, unless it is this program"
                                                         : ", by that table, unless one of them is this program");
      if (platform_of(f).maker == Maker::apple)
        return "this process, outside PyTorch's tensors: Metal counts no other process";
      if (is_own_outside(f)) return "this process's own libraries, outside its allocator (contexts, NCCL, CUDA graphs)";
      return f.others.empty() || f.may_name_itself ? "not this allocator: other processes, or libraries of this one"
                                                   : other_processes_words(f.others);
    case Cause::host:
      return f.wording->name == "statement_killed" ? "the host's memory, most likely"
                                                   : "the host's memory, not the GPU's";
    case Cause::resource:
      return fmt::format("{}: neither the GPU's memory nor the host's is short", resource_of(*f.wording));
    case Cause::unknown:
      break;
  }
  return "cannot be determined from this message";
}

namespace {
std::string decider_of(const Failure& f) {
  if (!f.missing_evidence.empty()) return f.missing_evidence;
  if (f.wording->role == Role::host)
    return "the kernel's log (dmesg -T | grep -i -e oom -e killed), kubectl describe pod, or sacct -o State,MaxRSS of "
           "the job";
  if (takes_device_at_start(*f.wording))
    return "what the program prints around the message: how much it may take (Created device, Stats: Limit), how much "
           "of that was in use (InUse), and what holds most (Peak buffers, Bin, Current usage); or who else held the "
           "device: vramtrack watch beside the program";
  // PyTorch's settings are limits.
  const bool has_setting = !f.wording->setting.empty() && !f.wording->name.starts_with("torch_");
  std::string options(options_of(f));
  constexpr double kFewCardsBytes = 80 * kGiB;
  if (f.figures.get(Figure::asked).value_or(0) >= kFewCardsBytes && !f.figures.get(Figure::total))
    return fmt::format("whether the device has as much at all ({} shows it); if not: {}", platform_of(f).tool,
                       options.empty() ? less_of(f) : options);
  if (options.empty() && has_setting) options = fmt::format("see {}", f.wording->setting);
  if (!options.empty())
    return fmt::format(
        "what {} shows before the program starts: if others hold the device then, end them; if nobody does, the "
        "program itself needs too much: {}",
        platform_of(f).tool, options);
  if (f.wording->name == "statement_session")
    return "how many encoder sessions are open (nvidia-smi, column of ENC; drivers of GeForce cards allow few), "
           "whether the driver supports the card, and what nvidia-smi shows of the device's memory";
  if (!platform_of(f).has_vramtrack)
    return fmt::format("what {} shows while the program runs, and whether it fails with a smaller model or input",
                       platform_of(f).tool);
  return "who held the device when it failed: vramtrack watch beside the program, or vramtrack run -- PROGRAM, or the "
         "whole message with its figures";
}
}  // namespace

namespace {
std::string step_of(const Failure& f) {
  if (std::string step = kv_cache_step(f); !step.empty()) return step;
  switch (f.cause) {
    case Cause::leak:
      if (!platform_of(f).has_vramtrack)
        return fmt::format("find what keeps it: use {} to see what grows, step by step", platform_of(f).tool);
      return "find the line that keeps it: vramtrack run -- PROGRAM, or vramtrack snapshot leaks on three snapshots";
    case Cause::fragmentation:
      if (const Platform& p = platform_of(f);
          f.wording->program == "PyTorch" && !p.allocator.empty() && !f.refused.contains("expandable_segments"))
        return fmt::format("set {}=expandable_segments:True{}, or make the sizes repeat (pad batches and sequences)",
                           p.allocator, p.maker == Maker::nvidia ? " (PYTORCH_CUDA_ALLOC_CONF before 2.9)" : "");
      return "make the sizes repeat (pad batches and sequences), or allocate the large blocks first";
    case Cause::bad_size:
      return "look for the wrong size in the line that asked, and in what it was computed from: an overflow, a shape, "
             "indices that were overwritten, a damaged file";
    case Cause::too_big: {
      // If a layout pads most of an array, it needs another shape, not a smaller one.
      if (!f.largest.empty() && f.largest.front().padding_bytes * 2 > f.largest.front().bytes)
        return fmt::format(
            "give the largest array another shape: the device pads its last two dimensions (to multiples "
            "of 8 and 128), and {} of its {} are padding",
            size_words(f.largest.front().padding_bytes), size_words(f.largest.front().bytes));
      if (const auto options = options_of(f); !options.empty()) return std::string(options);
      // PyTorch's settings are limits: they help if there was room.
      const bool has_setting = !f.wording->setting.empty() && !f.wording->name.starts_with("torch_");
      if (!f.remarks.advised.empty()) return own_advice(f);
      return fmt::format("use less at once: {}{}", less_of(f),
                         has_setting ? fmt::format("; see also {}", f.wording->setting) : "");
    }
    case Cause::full:
      if (const auto options = options_of(f); !options.empty()) return std::string(options);
      if (!f.remarks.advised.empty()) return own_advice(f);
      return fmt::format(
          "use less in all: {}; {}if it ran for a while before, see whether its memory grows ({})", less_of(f),
          f.remarks.is_gtt ? "raise the limit of GTT, the part of the host's memory that the driver lets "
                             "the GPU use (amdgpu.gttsize, ttm.pages_limit); "
                           : "",
          growth_tool(f));
    case Cause::limit: {
      if (f.remarks.set_aside > 0 && f.wording->otherwise == Cause::unknown && f.wording->text.empty())
        return fmt::format("lower what is set aside at once ({}), or leave it to the program", f.remarks.settings);
      if (is_kept_from_device(f))
        return fmt::format(
            "find what keeps the program from the rest ({}): a partition (MIG, vGPU), the share that the "
            "firmware or the kernel gives the GPU (BIOS, GTT), or the version of the driver or runtime",
            platform_of(f).tool);
      if (!f.remarks.advised.empty()) return own_advice(f);
      if (f.wording->name == "statement_piece") return std::string(kInPieces);
      if (f.wording->name == "lm_studio") return std::string(options_of(f));
      // A higher limit cannot exceed the device; a limit below a part of the device belongs to an arena.
      const double asked = f.figures.get(Figure::asked).value_or(kAnyPieceBytes);
      if (const auto free = f.figures.get(Figure::free); free && asked > *free && asked >= kMiB)
        return fmt::format(
            "ask for less at once: {} were free, so that a higher limit gives no more{}", size_words(*free),
            f.wording->setting.empty()
                ? ""
                : fmt::format("; a lower one ({}) lets the program grow in smaller pieces, and leaves room",
                              f.wording->setting));
      return f.wording->setting.empty() ? "find the limit and raise it, or stay below it"
                                        : fmt::format("raise it ({}), or stay below it", f.wording->setting);
    }
    case Cause::outside:
      if (const auto options = options_of(f); is_own_outside(f) && !options.empty()) return std::string(options);
      if (is_own_outside(f))
        return platform_of(f).maker == Maker::apple
                   ? std::string(
                         "free what this process holds beside PyTorch's tensors (torch.mps.empty_cache(), "
                         "compiled graphs, another framework), or use a smaller model or input; Metal counts "
                         "this process alone, so ending others gives it nothing")
                   : "lower what the allocator takes, so that the libraries find room "
                     "(PYTORCH_ALLOC_CONF=per_process_memory_"
                     "fraction:0.9), or use less: fewer CUDA graphs, NCCL_BUFFSIZE, CUDA_MODULE_LOADING=LAZY";
      if (!f.remarks.shared.empty() && f.others.empty())
        return fmt::format("end what else uses the device, or run one process on each device (see {}){}",
                           platform_of(f).tool, other_device(f));
      if (f.may_name_itself)
        return "see whose process that is (vramtrack holders): if it is this program's, another library of it holds "
               "the memory (a serving engine, a second framework), else end it" +
               other_device(f);
      return fmt::format("see who holds the device ({}), end what is left over{}", platform_of(f).tool,
                         other_device(f));
    case Cause::host:
      if (f.wording->program == "llama.cpp/ggml")
        return "take a shorter context (-c) or a smaller quantization of the model, put more layers on the GPU (-ngl), "
               "set GGML_CUDA_NO_PINNED=1, or give the host more memory";
      if (f.wording->program == "Ray")
        return "run fewer tasks at a time on a node (num_cpus or memory= of each task), read less at once, or give the "
               "node more memory; RAY_memory_usage_threshold only moves the share at which Ray ends tasks, before the "
               "kernel does";
      switch (platform_of(f).maker) {
        case Maker::phone:
          return "use a smaller or quantized model or input; on iOS, ask for the entitlements for more memory and a "
                 "larger address space";
        case Maker::browser:
          return "use a smaller model or input, and close other tabs: a page has an address space of 2 to 4 GiB";
        default:
          break;
      }
      if (f.system == System::windows && f.wording->setting.empty())
        return "enlarge the page file (Windows gives no more than RAM and page file together, even where RAM is free), "
               "close other programs, or load less at once (fewer workers, no offloading)";
      return f.wording->setting.empty() || f.is_pinned
                 ? "give the host, the container or the job more memory, or load less at once (fewer workers, no "
                   "pinning, no offloading)"
                 : fmt::format("raise the limit ({}), or load less at once", f.wording->setting);
    case Cause::resource:
      if (f.wording->role == Role::device)
        return "destroy each such object when it is no longer used, or create it once and keep it (if the program is "
               "not yours: report it to its developers)";
      if (!f.wording->setting.empty()) return fmt::format("raise the limit ({})", f.wording->setting);
      return fmt::format(
          "launch the kernel with smaller blocks{}: what is short is the memory on the chip that the parts of a "
          "kernel share, not the memory of the device",
          has_any(lower(f.before + f.text), "triton|inductor|num_stages|torch")
              ? ", a smaller num_stages or fewer warps (Inductor's max-autotune skips such a choice and takes another)"
              : "");
    case Cause::unknown:
      break;
  }
  return "record what this would need: see below";
}

}  // namespace

namespace {
/// Whether advice names an option that the text calls ignored or unsupported.
bool names_refused(const Failure& f, std::string_view advice) {
  const std::string words = lower(advice);
  return std::any_of(f.refused.begin(), f.refused.end(),
                     [&](const std::string& option) { return words.find(option) != std::string::npos; });
}
}  // namespace

std::string next_step_of(const Failure& f) {
  const std::string step = step_of(f);
  if (!names_refused(f, step)) return step;
  // Its alternatives that the text allows.
  std::string out;
  for (std::string_view rest = step; !rest.empty();) {
    constexpr std::string_view kOr = ", or ";
    const std::size_t end = std::min({rest.find(kOr), rest.find("; "), rest.size()});
    const std::string_view one = rest.substr(0, end);
    if (!names_refused(f, one)) out += fmt::format("{}{}", out.empty() ? "" : kOr, one);
    rest.remove_prefix(std::min(rest.size(), end + (rest.substr(end).starts_with(kOr) ? kOr.size() : 2)));
  }
  return out.empty() ? fmt::format("use less at once: {}", less_of(f)) : out;
}

std::string missing_evidence_for(const Failure& f) {
  const std::string own = f.remarks.advised.empty() ? std::string() : own_advice(f);
  if (own.empty() || names_refused(f, own)) return decider_of(f);
  return fmt::format("{}; meanwhile, {}", decider_of(f), own);
}

}  // namespace vramtrack::explain

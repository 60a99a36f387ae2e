#include "explain/advice.hpp"

#include <fmt/format.h>

#include "core/units.hpp"
#include "explain/cause.hpp"
#include "explain/kv_cache.hpp"
#include "explain/processes.hpp"

namespace vramtrack::explain {

std::string fault_of(const Failure& f) {
  switch (f.cause) {
    case Cause::leak:
      return "the program's: it keeps what it should have released";
    case Cause::fragmentation:
      return "the allocator's: the memory is there, in pieces that are too small";
    case Cause::too_big:
      return "the program's own need, and nobody else's";
    case Cause::full:
      return "the program's own need, and nobody else's: all that it holds, not this request";
    case Cause::limit:
      return f.wording->setting.empty() ? "a limit that was set, not the device"
                                        : fmt::format("a limit that was set, not the device: {}", f.wording->setting);
    case Cause::outside:
      return f.others.empty() || f.may_name_itself ? "not this allocator's: other processes, or libraries of this one"
                              : fmt::format("others': {}", processes_words(f.others));
    case Cause::host:
      return "the host's memory, not the GPU's";
    case Cause::unknown:
      break;
  }
  return "cannot be told from this message";
}

std::string next_step_of(const Failure& f) {
  if (const std::string step = kv_cache_step(f); !step.empty()) return step;
  switch (f.cause) {
    case Cause::leak:
      return "find the line that keeps it: vramtrack run -- PROGRAM, or vramtrack snapshot leaks on three snapshots";
    case Cause::fragmentation:
      if (f.wording->program == "PyTorch")
        return "set PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before 2.9), or make the "
               "sizes "
               "repeat (pad batches and sequences)";
      return "make the sizes repeat (pad batches and sequences), or allocate the large blocks first";
    case Cause::too_big: {
      if (f.figures.get(Figure::asked).value_or(0) < kImpossibleBytes && f.runs_in != nullptr)
        return std::string(f.runs_in->setting);
      if (f.figures.get(Figure::asked).value_or(0) >= kImpossibleBytes)
        return "look for the wrong size in the line that asked";
      // A layout that pads most of an array away needs another shape, not a smaller one.
      if (!f.largest.empty() && f.largest.front().padding_bytes * 2 > f.largest.front().bytes)
        return fmt::format(
            "give the largest array another shape: the device pads its last two dimensions (to multiples "
            "of 8 and 128), and {} of its {} are padding",
            size_words(f.largest.front().padding_bytes), size_words(f.largest.front().bytes));
      // PyTorch's settings are limits: they help where there was room.
      const bool has_setting = !f.wording->setting.empty() && !f.wording->name.starts_with("torch_");
      return fmt::format(
          "use less at once: a smaller batch or sequence, activation checkpointing, a lower precision, more devices{}",
          has_setting ? fmt::format("; see also {}", f.wording->setting) : "");
    }
    case Cause::full:
      if (f.runs_in != nullptr) return std::string(f.runs_in->setting);
      return "use less in all: a smaller batch or sequence, activation checkpointing, a lower precision, more devices; if "
             "it ran for a while before, see whether its memory grows (vramtrack run -- PROGRAM)";
    case Cause::limit:
      return f.wording->setting.empty() ? "find the limit and raise it, or use less below it"
                                        : fmt::format("raise it ({}), or use less below it", f.wording->setting);
    case Cause::outside:
      if (f.may_name_itself)
        return "see whose process that is (vramtrack holders): if it is this program's, another library of it holds the "
               "memory (a serving engine, a second framework), else end it, or choose another device with "
               "CUDA_VISIBLE_DEVICES";
      return "see who holds the device (vramtrack holders, or watch --once), end what is left over, or choose another "
             "device with CUDA_VISIBLE_DEVICES";
    case Cause::host:
      return f.wording->setting.empty() || f.is_pinned
                 ? "give the host, the container or the job more memory, or load less at once (fewer workers, no "
                   "pinning, no offloading)"
                 : fmt::format("raise the limit ({}), or load less at once", f.wording->setting);
    case Cause::unknown:
      break;
  }
  return "record what this would need: see below";
}

std::string would_tell_of(const Failure& f) {
  if (f.wording->role == Role::host)
    return "the kernel's log (dmesg -T | grep -i -e oom -e killed), kubectl describe pod, or sacct -o State,MaxRSS of "
           "the job";
  return "who held the device when it failed: vramtrack watch beside the program, or vramtrack run -- PROGRAM, or the "
         "whole message with its figures";
}

}  // namespace vramtrack::explain

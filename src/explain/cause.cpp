#include "explain/cause.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/units.hpp"
#include "explain/table.hpp"

namespace vramtrack::explain {
namespace {

/// More than any machine has: the size itself is wrong.
constexpr double kImpossibleBytes = 16 * kTiB;
/// What a process takes of a device beside its allocator: its context and the kernels of libraries.
constexpr double kContextBytes = 3 * kGiB;
/// No card that such programs run on is as small.
constexpr double kSmallBytes = kGiB;
/// Up to this the drivers of Intel's GPUs give in one piece, unless they are told otherwise (oneAPI's documentation of
/// UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS).
constexpr double kIntelPieceBytes = 4 * kGiB;

/// The figures of a device, completed by what follows from them.
struct Sums {
  std::optional<double> asked, total, free, allocated, reserved, cached, process, allowed;
  double others = 0;           ///< of other processes, added up
  bool is_in_message = false;  ///< others are
};

Sums sums_of(const Failure& f) {
  Sums s;
  s.asked = f.figures.get(Figure::asked);
  s.total = f.figures.get(Figure::total);
  s.free = f.figures.get(Figure::free);
  s.allocated = f.figures.get(Figure::allocated);
  s.reserved = f.figures.get(Figure::reserved);
  s.cached = f.figures.get(Figure::unallocated);
  s.process = f.figures.get(Figure::process);
  s.allowed = f.figures.get(Figure::allowed);
  if (!s.reserved && s.allocated && s.cached) s.reserved = *s.allocated + *s.cached;
  if (!s.cached && s.allocated && s.reserved) s.cached = std::max(0.0, *s.reserved - *s.allocated);
  std::vector<OtherProcess> others = f.others;
  // A container hides its own pid: the one process that is named is then this one, if it holds what this allocator
  // does.
  if (!s.process && others.size() == 1 && s.reserved && *s.reserved > 0 && others.front().bytes >= *s.reserved * 0.98 &&
      others.front().bytes <= *s.reserved + kContextBytes) {
    s.process = others.front().bytes;
    others.clear();
  }
  for (const OtherProcess& other : others) s.others += other.bytes;
  s.is_in_message = !others.empty();
  return s;
}

/// "process 450 (7.69 GiB), process 453 (1.28 GiB) and 5 more": the largest first.
std::string others_words(std::vector<OtherProcess> others) {
  std::stable_sort(others.begin(), others.end(),
                   [](const OtherProcess& a, const OtherProcess& b) { return a.bytes > b.bytes; });
  std::string out;
  for (std::size_t i = 0; i < others.size() && i < 3; ++i)
    out += fmt::format("{}process {:.0f} ({})", i == 0 ? "" : ", ", others[i].pid, size_words(others[i].bytes));
  if (others.size() > 3) out += fmt::format(" and {} more", others.size() - 3);
  return out;
}

bool is_intel(const Failure& f) {
  return f.wording->name == "torch_xpu";
}

/// "6.09 GiB free in 3 pieces, the largest of 2.00 GiB"
std::string free_words(double free, double piece, const Failure& f) {
  if (free <= 0) return "nothing free";
  const double pieces = f.figures.get(Figure::pieces).value_or(0);
  if (pieces <= 1) return fmt::format("{} free in one piece", size_words(piece));
  return fmt::format("{} free in {:.0f} pieces, the largest of {}", size_words(free), pieces, size_words(piece));
}

/// For an allocator that listed its pieces: exact where messages alone can only estimate. False: the list does not
/// explain it.
bool judge_pieces(Failure& f, const Sums& s, double piece) {
  if (!s.asked || !s.allocated || piece >= *s.asked) return false;
  const double free = s.cached.value_or(0);
  const std::string sizes = fmt::format("{} were requested; the allocator had {} in use and {}", size_words(*s.asked),
                                        size_words(*s.allocated), free_words(free, piece, f));
  if (free >= *s.asked) {
    f.cause = Cause::fragmentation;
    f.because = sizes + ": enough, but not in one piece";
    return true;
  }
  const double taken = *s.allocated + free;
  // It is allowed more than it has, and did not get it.
  if (s.allowed && taken + *s.asked <= *s.allowed * 0.99) {
    f.cause = Cause::outside;
    f.because = fmt::format("{}; it may take {} and has taken {}: the device did not have the rest", sizes,
                            size_words(*s.allowed), size_words(taken));
    return true;
  }
  f.cause = Cause::too_big;
  f.because = sizes;
  return true;
}

/// False: the figures decide nothing.
bool judge_device(Failure& f) {
  const Sums s = sums_of(f);
  const auto set = [&f](Cause cause, std::string because) {
    f.cause = cause;
    f.because = std::move(because);
    return true;
  };
  if (const auto needed = f.figures.get(Figure::needed); needed && !s.total && *needed < kSmallBytes)
    return set(Cause::unknown,
               fmt::format("this program needs {} in all, which fits on any card: earlier arrays of this "
                           "process, or others, filled the device",
                           size_words(*needed)));
  if (const auto needed = f.figures.get(Figure::needed); needed && s.total) {
    const double free = s.free.value_or(*s.total);
    const double used = *s.total - free;
    if (s.free && *needed > free && *needed <= *s.total) {
      const std::string sizes =
          fmt::format("{} were needed at the start, but of the device's {} only {} were free: {} were already in use",
                      size_words(*needed), size_words(*s.total), size_words(free), size_words(used));
      return set(used > ordinary_outside_bytes(*s.total) ? Cause::outside : Cause::limit, sizes);
    }
    if (*needed > *s.total)
      return set(Cause::too_big,
                 fmt::format("{} are needed, but only {} are available", size_words(*needed), size_words(*s.total)));
  }
  if (!s.asked) return false;
  if (*s.asked >= kImpossibleBytes)
    return set(Cause::too_big, fmt::format("{} were requested, which no machine has: the size itself is wrong (an "
                                           "overflow, a shape, a damaged file)",
                                           size_words(*s.asked)));
  const std::string asked = fmt::format("{} were requested", size_words(*s.asked));
  if (s.total && *s.asked >= *s.total)
    return set(Cause::too_big, fmt::format("{}, and the device has {} in all", asked, size_words(*s.total)));
  if (const auto piece = f.figures.get(Figure::piece); piece && judge_pieces(f, s, *piece)) return true;
  const double cached = s.cached.value_or(0);
  // A limit makes what is free beyond it useless; some is kept back by drivers, so free memory alone shows a limit only
  // where there is some to spare (as `snapshot oom`).
  const double spare = 32 * kMiB + *s.asked / 32;
  const double held = s.reserved.value_or(s.allocated.value_or(0));
  // Messages round to a hundredth.
  const bool has_hit_allowed = s.allowed && held + *s.asked > *s.allowed * 0.99;
  const bool is_limited = (has_hit_allowed && s.free.value_or(*s.allowed) >= *s.asked) ||
                          (!s.allowed && s.free && *s.free >= *s.asked + spare);
  if (is_limited && !s.allowed && s.total && *s.free <= *s.total)
    return set(Cause::limit,
               fmt::format("{} and {} of the device's {} were free: something else stopped it, a limit of "
                           "this process or of the driver",
                           asked, size_words(*s.free), size_words(*s.total)));
  const double room = is_limited ? 0 : s.free.value_or(0);
  // A message does not say how the cache lies: as in `snapshot summary`, less than a tenth of what is reserved, or 64
  // MiB, is what any allocator keeps.
  const bool is_cache_large = cached >= std::max(64 * kMiB, s.reserved.value_or(0) / 10);
  if (is_cache_large && cached + room >= *s.asked && cached > room)
    return set(
        Cause::fragmentation,
        fmt::format("{}; {} were reserved and not allocated{}: enough, but not in one piece", asked, size_words(cached),
                    s.free && !is_limited ? fmt::format(" and {} free", size_words(*s.free)) : ""));
  if (has_hit_allowed && is_limited) {
    return set(Cause::limit,
               fmt::format("{}, {} were held and {} are allowed{}", asked, size_words(held), size_words(*s.allowed),
                           s.free && s.total ? fmt::format("; the device still had {} of {} free", size_words(*s.free),
                                                           size_words(*s.total))
                                             : ""));
  }
  if (s.allowed && !s.free && s.allocated && held + *s.asked <= *s.allowed)
    return set(Cause::fragmentation,
               fmt::format("{}; {} of the {} that may be taken were in use: {} were free, but not in one piece", asked,
                           size_words(held), size_words(*s.allowed), size_words(*s.allowed - held)));
  if (s.allowed && !s.free && s.allocated && f.wording->otherwise != Cause::limit)
    return set(Cause::too_big, fmt::format("{} while {} of the {} that may be taken were in use", asked,
                                           size_words(held), size_words(*s.allowed)));
  if (is_intel(f) && *s.asked >= kIntelPieceBytes && s.total && s.free.value_or(*s.total - held) >= *s.asked)
    return set(Cause::limit, fmt::format("{} in one piece, and {} of the device's {} were free: Intel's driver "
                                         "allocates no piece of 4 GiB or more unless it is told to",
                                         asked, size_words(s.free.value_or(*s.total - held)), size_words(*s.total)));
  if (const auto outside = f.figures.get(Figure::outside); outside && s.total && s.allocated) {
    // They are of this process, too (its compiled graphs): the larger part is meant.
    if (*outside > *s.allocated && *outside >= *s.asked)
      return set(Cause::outside,
                 fmt::format("{} while {} were allocated here; {} of the {} that may be used are held "
                             "outside this allocator",
                             asked, size_words(*s.allocated), size_words(*outside), size_words(*s.total)));
    return set(Cause::too_big,
               fmt::format("{} while {} were allocated and {} held otherwise, of {} that may be used", asked,
                           size_words(*s.allocated), size_words(*outside), size_words(*s.total)));
  }
  if (s.total && s.free) {
    const double ordinary = ordinary_outside_bytes(*s.total);
    if (s.is_in_message && s.others > ordinary && s.others >= *s.asked)
      return set(Cause::outside,
                 fmt::format("{} and {} were free; of the device's {} others hold {}: {}", asked, size_words(*s.free),
                             size_words(*s.total), size_words(s.others), others_words(f.others)));
    if (s.reserved || s.allocated) {
      const double outside = *s.total - *s.free - held;
      if (outside > ordinary && outside >= *s.asked) {
        const double own = s.process ? *s.process - held : 0;
        return set(Cause::outside,
                   fmt::format("{} and {} were free; of the device's {} this allocator had {}, and {} are used outside "
                               "it{}",
                               asked, size_words(*s.free), size_words(*s.total), size_words(held), size_words(outside),
                               own > ordinary ? fmt::format(" ({} of them by this process)", size_words(own)) : ""));
      }
    }
    if (s.allocated)
      return set(
          Cause::too_big,
          fmt::format("{} while {} were allocated{}, and only {} were free{}{}", asked, size_words(*s.allocated),
                      *s.allocated > *s.total
                          ? fmt::format(" (more than the device's {}: the driver had moved some to the host)",
                                        size_words(*s.total))
                          : "",
                      size_words(*s.free), cached > 0 ? fmt::format(", with {} in the cache", size_words(cached)) : "",
                      s.is_in_message ? fmt::format("; {} for others", size_words(s.others)) : ""));
  }
  return false;
}

void judge_host(Failure& f) {
  const auto asked = f.figures.get(Figure::asked);
  const auto free = f.figures.get(Figure::free);
  const auto resident = f.figures.get(Figure::resident);
  const auto limit = f.figures.get(Figure::allowed) ? f.figures.get(Figure::allowed) : f.figures.get(Figure::total);
  f.cause = f.wording->otherwise;
  if (f.cause == Cause::unknown) {
    f.because =
        "the process was ended by signal 9 (SIGKILL), which the kernel sends when the host's memory runs out, "
        "and which people, time limits and schedulers send too";
    return;
  }
  f.because = "the memory of the host ran out, not that of a GPU";
  if (asked && free)
    f.because += fmt::format(": {} were needed and {} were available", size_words(*asked), size_words(*free));
  else if (asked)
    f.because += fmt::format(": {} were requested in one piece", size_words(*asked));
  else if (resident && limit)
    f.because += fmt::format(": {} of {} were in use", size_words(*resident), size_words(*limit));
  else if (resident)
    f.because += fmt::format(": the process that was ended held {}", size_words(*resident));
}

/// What is said where no figures decide, and the wording itself does.
std::string wording_words(const Failure& f) {
  const auto asked = f.figures.get(Figure::asked);
  std::string out = asked ? fmt::format("{} were requested", size_words(*asked)) : "";
  const auto add = [&out](std::string_view words) {
    if (!out.empty()) out += "; ";
    out += words;
  };
  switch (f.cause) {
    case Cause::limit:
      add(fmt::format(
          "{} refused because of its own limit{}", f.wording->program,
          f.figures.get(Figure::allowed) ? fmt::format(", {}", size_words(*f.figures.get(Figure::allowed))) : ""));
      break;
    case Cause::too_big:
      if (const auto needed = f.figures.get(Figure::needed))
        add(fmt::format("it needs {} in all", size_words(*needed)));
      add(fmt::format("{} did not find that much free", f.wording->program));
      if (f.wording->program.find("XLA") != std::string_view::npos ||
          f.wording->program.find("TensorFlow") != std::string_view::npos)
        out += ", and it takes most of the device for itself when it starts: its own arrays filled it";
      else if (f.wording->program == "llama.cpp/ggml" || f.wording->program == "Ollama")
        out += ", and such a buffer is made when the model is loaded, before anything can grow";
      break;
    case Cause::outside:
      add("the memory was released before, and others hold it now");
      break;
    default:
      add(fmt::format("{} says that memory ran out, but not who holds it", f.wording->program));
  }
  return out;
}

}  // namespace

double ordinary_outside_bytes(double total_bytes) {
  return std::max({kGiB, std::min(2 * kGiB, total_bytes / 8), total_bytes / 10});
}

std::string size_words(double bytes) {
  if (bytes >= 1024 * kTiB) return fmt::format("{:.1f} EiB", bytes / (kTiB * kMiB));
  if (bytes >= kTiB) return fmt::format("{:.2f} TiB", bytes / kTiB);
  if (bytes >= kGiB) return fmt::format("{:.2f} GiB", bytes / kGiB);
  return format_size(static_cast<std::uint64_t>(std::max(bytes, 0.0)));
}

void find_cause(Failure& failure) {
  if (failure.is_pinned && failure.figures.count() == 0) {
    failure.cause = Cause::host;
    failure.because = "it failed while host memory was being pinned: the driver could not lock that much of the host's";
    return;
  }
  if (failure.wording->role == Role::host) return judge_host(failure);
  if (!judge_device(failure)) {
    failure.cause = failure.wording->otherwise;
    failure.because = wording_words(failure);
  }
  if (!failure.largest.empty()) failure.because += fmt::format("; the largest: {}", holdings_words(failure.largest, 3));
}

std::string fault_of(const Failure& f) {
  switch (f.cause) {
    case Cause::leak:
      return "the program's: it keeps what it should have released";
    case Cause::fragmentation:
      return "the allocator's: the memory is there, in pieces that are too small";
    case Cause::too_big:
      return "the program's own need, and nobody else's";
    case Cause::limit:
      return f.wording->setting.empty() ? "a limit that was set, not the device"
                                        : fmt::format("a limit that was set, not the device: {}", f.wording->setting);
    case Cause::outside:
      return f.others.empty() ? "not this allocator's: other processes, or libraries of this one"
                              : fmt::format("others': {}", others_words(f.others));
    case Cause::host:
      return "the host's memory, not the GPU's";
    case Cause::unknown:
      break;
  }
  return "cannot be told from this message";
}

std::string next_step_of(const Failure& f) {
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
    case Cause::limit:
      return f.wording->setting.empty() ? "find the limit and raise it, or use less below it"
                                        : fmt::format("raise it ({}), or use less below it", f.wording->setting);
    case Cause::outside:
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

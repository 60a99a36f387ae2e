#include "explain/cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/format.hpp"
#include "core/room.hpp"
#include "core/units.hpp"
#include "explain/cause_words.hpp"
#include "explain/kv_cache.hpp"
#include "explain/platform.hpp"
#include "explain/processes.hpp"
#include "explain/statement.hpp"
#include "explain/table.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

/// No card that runs such programs is smaller.
constexpr double kSmallBytes = kGiB;
/// Drivers of Intel's GPUs allocate at most this much in one piece, unless configured otherwise (oneAPI's documentation
/// of UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS).
constexpr double kIntelPieceBytes = 4 * kGiB;

/// Messages round to two decimals.
constexpr double kAlmost = 0.99;
/// The share of a device with which one program fills it, whatever others hold; and that with which others do.
constexpr double kFills = 0.9;
constexpr double kMost = 0.75;

/// The figures of a device, completed by values that follow from them.
struct Sums {
  double asked = 0;  ///< 0: not in the message
  std::optional<double> total, free, allocated, reserved, cached, process, allowed, used;
  double others = 0;  ///< sum over other processes

  /// Memory that the allocator has taken.
  [[nodiscard]] double held() const { return reserved.value_or(allocated.value_or(0)); }
  /// Memory that is neither free nor this allocator's; nullopt: the message does not show it.
  [[nodiscard]] std::optional<double> outside() const {
    if (!total || !free || (!reserved && !allocated)) return std::nullopt;
    return *total - *free - held();
  }
  /// Drivers reserve some memory, more on larger devices, so that the last per cent is unusable; and the
  /// memory of others may change by a tenth between the failure and the message. `taken`: allocated since it
  /// was free.
  [[nodiscard]] bool has_room_on_device(double taken = 0) const {
    const double theirs = std::max(others, outside().value_or(0));
    // What is left of a device that the program fills is kept back by the driver, or in pieces.
    if (total && free && *free < *total / 20 && held() > kFills * *total) return false;
    return free && *free - taken >= asked + std::max({32 * kMiB, asked / 32, total.value_or(0) / 128, theirs / 8});
  }
  [[nodiscard]] bool has_hit_allowed() const { return allowed && held() + asked > *allowed * kAlmost; }
  /// A limit in the message makes free memory beyond it unusable.
  [[nodiscard]] bool is_limited() const { return has_hit_allowed() && free.value_or(*allowed) >= asked; }
};

Sums sums_of(const Failure& f) {
  Sums s;
  s.asked = f.figures.get(Figure::asked).value_or(0);
  s.total = f.figures.get(Figure::total);
  s.free = f.figures.get(Figure::free);
  s.allocated = f.figures.get(Figure::allocated);
  s.reserved = f.figures.get(Figure::reserved);
  s.cached = f.figures.get(Figure::unallocated);
  s.process = f.figures.get(Figure::process);
  s.allowed = f.figures.get(Figure::allowed);
  s.used = f.figures.get(Figure::used);
  if (!s.reserved && s.allocated && s.cached) s.reserved = *s.allocated + *s.cached;
  // Used plus free memory is the total.
  if (!s.total && s.used && s.free && f.used_line == 0) s.total = *s.used + *s.free;
  // A limit on all memory holders together includes the memory of others.
  if (!s.total && s.allowed && f.figures.get(Figure::outside)) std::swap(s.total, s.allowed);
  if (!s.cached && s.allocated && s.reserved) s.cached = std::max(0.0, *s.reserved - *s.allocated);
  for (const OtherProcess& other : f.others) s.others += other.bytes;
  return s;
}

Cause filled_by(double asked, double memory) {
  return is_too_big(asked, memory) ? Cause::too_big : Cause::full;
}

Answer by_kv_cache(const Failure& f, const Sums&) {
  return kv_cache_diagnosis(f);
}

/// The program reports its total need before it starts.
Answer by_total_need(const Failure& f, const Sums& s) {
  const auto needed = f.figures.get(Figure::needed);
  if (!needed) return std::nullopt;
  if (!s.total && s.free && *needed > *s.free)
    return Diagnosis{Cause::too_big, fmt::format("its own plan before it needed {}, and {} were free",
                                                 size_words(*needed), size_words(*s.free))};
  if (!s.total) {
    if (*needed >= kSmallBytes) return std::nullopt;
    return Diagnosis{Cause::unknown,
                     fmt::format("this program needs {} in all, which fits on any card: earlier arrays of this "
                                 "process, or others, filled the device",
                                 size_words(*needed))};
  }
  const double free = s.free.value_or(*s.total);
  const double used = *s.total - free;
  if (s.free && *needed > free && *needed <= *s.total)
    return Diagnosis{
        used > ordinary_outside_bytes(*s.total) ? Cause::outside : Cause::limit,
        fmt::format(
            "{} were needed at the start, but of the device's {} only {} were free: {} were already in use, and "
            "{} were missing",
            size_words(*needed), size_words(*s.total), size_words(free), size_words(used), size_words(*needed - free))};
  if (*needed <= *s.total) return std::nullopt;
  return Diagnosis{Cause::too_big,
                   fmt::format("{} are needed, but only {} are available", size_words(*needed), size_words(*s.total))};
}

/// Memory that the driver has moved to the host, as it does on Windows.
std::string moved_words(const Sums& s) {
  const double held = s.held();
  return !s.total || held <= *s.total ? ""
                                      : fmt::format(" (of the {} held the driver had moved {} to the host's memory)",
                                                    size_words(held), size_words(held - *s.total));
}

/// The request exceeds what any machine, or this device, has.
Answer by_size_of_device(const Failure&, const Sums& s) {
  if (s.asked >= kImpossibleBytes)
    return Diagnosis{Cause::bad_size,
                     fmt::format("{} were requested, which no machine has: the size itself is wrong (an "
                                 "overflow, a shape, a damaged file)",
                                 size_words(s.asked))};
  if (!s.total || s.asked < *s.total) return std::nullopt;
  return Diagnosis{Cause::too_big, fmt::format("{} were requested, and the device has {} in all{}", size_words(s.asked),
                                               size_words(*s.total), moved_words(s))};
}

/// A program that creates its parts in sequence names the one that failed, and reports what was free before it.
Answer by_component(const Failure& f, const Sums& s) {
  const std::string& part = f.remarks.failed_part;
  if ((f.wording->name != "trtllm" && (part.empty() || s.asked > 0)) || !s.total || !s.free || *s.free < *s.total / 10)
    return std::nullopt;
  return Diagnosis{
      Cause::too_big,
      fmt::format("{} did not fit into the {} of the device's {} that were free before it: its own size, "
                  "and nobody else's",
                  part.empty() ? "the component that could not be created" : part + ", which could not be created,",
                  size_words(*s.free), size_words(*s.total))};
}

/// The allocator listed its pieces: exact, where messages alone only allow an estimate.
Answer by_pieces(const Failure& f, const Sums& s) {
  const auto piece = f.figures.get(Figure::piece);
  if (!piece || *piece >= s.asked) return std::nullopt;
  if (!s.allocated && s.free && *s.free >= s.asked)
    return Diagnosis{Cause::fragmentation, fmt::format("{} were requested, and {}: enough, but not in one piece",
                                                       size_words(s.asked), free_words(*s.free, *piece, f))};
  if (!s.allocated && s.free && !s.total)
    return Diagnosis{Cause::full, fmt::format("{} were requested, and what {} had set aside for itself had {}: it is "
                                              "used up, and not only in pieces",
                                              size_words(s.asked), who(*f.wording), free_words(*s.free, *piece, f))};
  if (!s.allocated) return std::nullopt;
  const double free = s.cached.value_or(0);
  const std::string sizes = fmt::format("{} were requested; the allocator had {} in use and {}", size_words(s.asked),
                                        size_words(*s.allocated), free_words(free, *piece, f));
  if (free >= s.asked) return Diagnosis{Cause::fragmentation, sizes + ": enough, but not in one piece"};
  const double taken = *s.allocated + free;
  // Its limit exceeds its memory, and it did not get it.
  if (s.allowed && taken + s.asked <= *s.allowed * kAlmost)
    return Diagnosis{Cause::outside,
                     fmt::format("{}; it may take {} and has taken {}: the device did not have the rest", sizes,
                                 size_words(*s.allowed), size_words(taken))};
  return Diagnosis{filled_by(s.asked, s.allowed.value_or(taken)), sizes};
}

/// Memory that llama.cpp put into buffers since it printed the free memory, which it does on start.
double buffers_since_start(const Failure& f) {
  if (f.wording->program != "llama.cpp/ggml") return 0;
  return f.figures.get(Figure::weights).value_or(0) + f.figures.get(Figure::kv_cache).value_or(0);
}

/// Other processes in the message. If one of them may be this process, memory outside its allocator counts.
Answer by_others(const Failure& f, const Sums& s) {
  if (f.may_name_itself || !s.total || !s.free || f.others.empty()) return std::nullopt;
  if (s.others <= ordinary_outside_bytes(*s.total) || s.others < s.asked) return std::nullopt;
  return Diagnosis{
      Cause::outside,
      fmt::format("{} were requested and {} were free; of the device's {} others hold {}: {}", size_words(s.asked),
                  size_words(*s.free), size_words(*s.total), size_words(s.others), processes_words(f.others))};
}

/// The device had enough free, and no limit in the message is near: the message does not show what refused.
Answer by_room_on_device(const Failure& f, const Sums& s) {
  // llama.cpp prints free memory on start; if the text lacks its buffers, that says nothing about the failure.
  if (f.wording->program == "llama.cpp/ggml" && buffers_since_start(f) <= 0) return std::nullopt;
  if (s.has_hit_allowed() || !s.has_room_on_device(buffers_since_start(f)) || !s.total || *s.free > *s.total)
    return std::nullopt;
  return Diagnosis{
      Cause::unknown,
      fmt::format("{} were requested and {} of the device's {} were free: the device had room, and the "
                  "message does not say what refused it",
                  size_words(s.asked), size_words(*s.free), size_words(*s.total)),
      "whether the program or its launcher sets a limit for itself; whether the GPU is partitioned or shared (MIG, "
      "vGPU, MPS, a container); how much memory the host had (on Windows, with the page file); how large an allocation "
      "the driver allows; and, with vramtrack watch beside the program, whether another process has released memory "
      "since"};
}

/// What the program holds is far from the device's total, and nothing shows who holds the rest.
Answer by_room_beside_own(const Failure& f, const Sums& s) {
  const double own = std::max(s.held(), s.process.value_or(0));
  if (!f.wording->text.empty() || !s.total || s.free || s.used || s.allowed || own <= 0) return std::nullopt;
  if (own * 2 > *s.total || s.asked * 4 > *s.total - own) return std::nullopt;
  return Diagnosis{Cause::unknown,
                   fmt::format("{} were requested, and this program held {} of the device's {}: beside its own memory "
                               "the device had room, and the message does not say what refused it",
                               size_words(s.asked), size_words(own), size_words(*s.total)),
                   "whether it is a program of 32 bits (its address space ends at 2 to 4 GiB), what others hold of the "
                   "device, whether a limit is set, and whether another version of the driver does the same"};
}

/// A message does not show the fragmentation of the cache: as in `snapshot summary`, any allocator keeps less than a
/// tenth of what is reserved, or 64 MiB.
Answer by_cache(const Failure&, const Sums& s) {
  const double cached = s.cached.value_or(0);
  // Memory that the driver has moved to the host is not device memory, whether fragmented or not.
  if (s.total && s.allocated.value_or(0) > *s.total) return std::nullopt;
  // Of a device that others hold, the pieces of a small cache do not matter.
  if (s.outside().value_or(0) > kMost * s.total.value_or(0) && s.outside()) return std::nullopt;
  const double room = s.is_limited() ? 0 : s.free.value_or(0);
  if (cached < std::max(64 * kMiB, s.reserved.value_or(0) / 10) || cached + room < s.asked) return std::nullopt;
  return Diagnosis{Cause::fragmentation,
                   fmt::format("{} were requested; {} were reserved and not allocated{}: enough, but not in one piece",
                               size_words(s.asked), size_words(cached),
                               s.free && !s.is_limited() ? fmt::format(" and {} free", size_words(*s.free)) : "")};
}

/// Whether held memory plus the request exceeds the limit in the message. If the message does not report free memory, a
/// limit is not taken as the cause (TensorFlow calls so the memory it found on start), unless the program says that it
/// was, or no card is so small.
Answer by_limit(const Failure& f, const Sums& s) {
  if (!s.allowed) return std::nullopt;
  const std::string asked = fmt::format("{} were requested", size_words(s.asked));
  const bool has_room_beyond = s.free || f.wording->otherwise == Cause::limit || *s.allowed < kSmallBytes;
  if (s.is_limited() && has_room_beyond)
    return Diagnosis{
        Cause::limit,
        fmt::format("{}, {} were held and {} are allowed{}", asked, size_words(s.held()), size_words(*s.allowed),
                    s.free && s.total
                        ? fmt::format("; the device still had {} of {} free", size_words(*s.free), size_words(*s.total))
                        : "")};
  if (s.free || !s.allocated) return std::nullopt;
  if (!s.has_hit_allowed() && s.held() * 2 < *s.allowed && f.wording->text.empty()) return std::nullopt;
  if (!s.has_hit_allowed())
    return Diagnosis{
        Cause::fragmentation,
        fmt::format("{}; {} of the {} that may be taken were in use: {} were free, but not in one piece", asked,
                    size_words(s.held()), size_words(*s.allowed), size_words(*s.allowed - s.held()))};
  if (f.wording->otherwise == Cause::limit) return std::nullopt;
  return Diagnosis{filled_by(s.asked, *s.allowed), fmt::format("{} while {} of the {} that may be taken were in use",
                                                               asked, size_words(s.held()), size_words(*s.allowed))};
}

/// The request alone exceeds the allocator's maximum, and the program does not call that a limit.
Answer by_piece_size(const Failure& f, const Sums& s) {
  if (f.wording->otherwise == Cause::limit || !s.allowed || s.asked < *s.allowed) return std::nullopt;
  return Diagnosis{Cause::too_big, fmt::format("{} were requested, and {} are allowed in all", size_words(s.asked),
                                               size_words(*s.allowed))};
}

Answer by_intel_piece(const Failure& f, const Sums& s) {
  if (f.wording->name != "torch_xpu" || s.asked < kIntelPieceBytes || !s.total) return std::nullopt;
  const double free = s.free.value_or(*s.total - s.held());
  if (free < s.asked) return std::nullopt;
  return Diagnosis{Cause::limit,
                   fmt::format("{} were requested in one piece, and {} of the device's {} were free: Intel's driver "
                               "allocates no piece of 4 GiB or more unless it is told to",
                               size_words(s.asked), size_words(free), size_words(*s.total))};
}

/// The message has one figure for everything held outside the allocator (Apple's GPUs).
Answer by_outside_figure(const Failure& f, const Sums& s) {
  const auto outside = f.figures.get(Figure::outside);
  if (!outside || !s.total || !s.allocated) return std::nullopt;
  // Part of it belongs to this process (its compiled graphs): the larger part decides.
  if (*outside > *s.allocated && *outside >= s.asked)
    return Diagnosis{
        Cause::outside,
        fmt::format("{} were requested while {} were allocated here; {} of the {} that may be used are held "
                    "outside this allocator",
                    size_words(s.asked), size_words(*s.allocated), size_words(*outside), size_words(*s.total))};
  return Diagnosis{
      filled_by(s.asked, *s.total),
      fmt::format("{} were requested while {} were allocated and {} held otherwise, of {} that may be used",
                  size_words(s.asked), size_words(*s.allocated), size_words(*outside), size_words(*s.total))};
}

/// Memory that is neither free nor this allocator's.
Answer by_what_is_outside(const Failure& f, const Sums& s) {
  if (!s.outside()) return std::nullopt;
  const double ordinary = ordinary_outside_bytes(*s.total);
  const double outside = *s.outside();
  if (outside <= ordinary || outside < s.asked) return std::nullopt;
  const double own = s.process ? *s.process - s.held() : 0;
  std::string breakdown;
  if (own > ordinary) breakdown = fmt::format(" ({} of them by this process)", size_words(own));
  if (f.may_name_itself)
    breakdown = fmt::format("; the message names {}, {} may be this one", processes_words(f.others),
                            f.others.size() == 1 ? "which" : "one of which");
  return Diagnosis{
      Cause::outside,
      fmt::format("{} were requested and {} were free; of the device's {} this allocator had {}, and {} are used "
                  "outside it{}",
                  size_words(s.asked), size_words(*s.free), size_words(*s.total), size_words(s.held()),
                  size_words(outside), breakdown)};
}

/// No other explanation: the program's own memory and the request do not fit.
Answer by_own_need(const Failure& f, const Sums& s) {
  if (!s.total || !s.free || !s.allocated) return std::nullopt;
  const double cached = s.cached.value_or(0);
  const std::string rest =
      fmt::format("{}{}", cached > 0 ? fmt::format(", with {} in the cache", size_words(cached)) : "",
                  f.others.empty() || f.may_name_itself ? "" : fmt::format("; {} for others", size_words(s.others)));
  const bool is_more_than_device = *s.allocated > *s.total;
  const std::string moved =
      is_more_than_device
          ? fmt::format(" (more than the device's {}: the driver had moved some to the host)", size_words(*s.total))
          : "";
  const Cause cause = filled_by(s.asked, *s.total);
  // The larger part decides, where the device could hold both without the other one.
  const double own = s.process.value_or(s.held());
  const double outside = *s.total - *s.free - own;
  if (cause == Cause::full && outside > std::max(own, kSmallBytes) && own + s.asked <= kFills * *s.total)
    return Diagnosis{
        Cause::outside,
        fmt::format("{} were requested while this process held {}: both fit into the device's {}, without the {} that "
                    "are neither its own nor free",
                    size_words(s.asked), size_words(own), size_words(*s.total), size_words(outside))};
  if (cause == Cause::full)
    return Diagnosis{
        Cause::full,
        fmt::format("{}{} were allocated{} and {} were free when {} were requested{}", size_words(*s.allocated),
                    is_more_than_device ? "" : fmt::format(" of the device's {}", size_words(*s.total)), moved,
                    size_words(*s.free), size_words(s.asked), rest)};
  return Diagnosis{Cause::too_big,
                   fmt::format("{} were requested while {} were allocated{}, and {} were free{}{}", size_words(s.asked),
                               size_words(*s.allocated), moved,
                               s.asked > *s.free ? "only " + size_words(*s.free) : size_words(*s.free), rest,
                               s.asked > *s.free ? "" : ": hardly more, of which drivers keep some back")};
}

/// A table near the message shows the device at another moment: filled by others, or idle. In any state between, it
/// decides nothing.
Answer by_table(const Failure& f, const Sums& s) {
  if (!s.used || !s.total || f.used_line == 0) return std::nullopt;
  const double ordinary = ordinary_outside_bytes(*s.total);
  const double rest = *s.total - *s.used;
  const bool is_too_little = s.asked > 0 ? s.asked > rest : rest < *s.total / 10;
  if (!is_too_little) return std::nullopt;
  const std::string words =
      (s.asked > 0 ? fmt::format("{} were requested; ", size_words(s.asked)) : "") + table_use_words(f);
  if (*s.used - std::max(s.held(), s.process.value_or(0)) > ordinary) return Diagnosis{Cause::outside, words};
  if (*s.used > ordinary || s.asked <= 0) return std::nullopt;
  return Diagnosis{filled_by(s.asked, *s.total), words};
}

/// llama.cpp creates its buffers when it loads a model, before anything grows.
Answer by_start(const Failure& f, const Sums& s) {
  if (f.wording->program != "llama.cpp/ggml" || !s.total || !s.free || s.asked <= 0) return std::nullopt;
  const double used = *s.total - *s.free;
  const double taken = buffers_since_start(f);
  const std::string words = fmt::format("{} were requested; when it started, {} of the device's {} were free{}",
                                        size_words(s.asked), size_words(*s.free), size_words(*s.total),
                                        taken > 0 ? fmt::format(", and it has taken {} since", size_words(taken)) : "");
  if (taken <= 0 && s.asked <= *s.free)
    return Diagnosis{Cause::unknown, words + "; the text does not show what it has taken since"};
  if (used <= ordinary_outside_bytes(*s.total)) return Diagnosis{filled_by(s.asked, *s.total), words};
  // It would fit without the memory that was in use before.
  if (s.asked + taken > *s.total) return Diagnosis{filled_by(s.asked, *s.total), words};
  if (s.asked + taken <= *s.free) return std::nullopt;
  return Diagnosis{Cause::outside, words};
}

/// The message was cut off before the allocator's figures, and shows only what this process holds and either the free
/// memory or the device's total.
Answer by_partial_figures(const Failure& f, const Sums& s) {
  if (!s.allocated || s.total.has_value() == s.free.has_value()) return std::nullopt;
  if (s.free) {
    if (s.asked <= *s.free) return std::nullopt;
    return Diagnosis{filled_by(s.asked, *s.allocated + *s.free),
                     fmt::format("{} were allocated and {} were free when {} were requested", size_words(*s.allocated),
                                 size_words(*s.free), size_words(s.asked))};
  }
  const std::string sizes = fmt::format("{} of the device's {} were allocated when {} were requested",
                                        size_words(*s.allocated), size_words(*s.total), size_words(s.asked));
  const bool fills = s.held() + s.asked > *s.total - ordinary_outside_bytes(*s.total);
  if (fills) return Diagnosis{filled_by(s.asked, *s.total), sizes};
  if (f.wording->otherwise != Cause::too_big) return std::nullopt;
  return Diagnosis{Cause::unknown, sizes + "; the message does not say who holds the rest"};
}

Answer by_process(const Failure&, const Sums& s) {
  if (!s.total || !s.free || !s.process || (s.asked <= 0 && *s.free >= *s.total / 10)) return std::nullopt;
  const std::string sizes = fmt::format("this process had {} of the device's {}, and {} were free{}",
                                        size_words(*s.process), size_words(*s.total), size_words(*s.free),
                                        s.asked > 0 ? fmt::format(" when {} were requested", size_words(s.asked)) : "");
  const double others = *s.total - *s.free - *s.process;
  if (others > ordinary_outside_bytes(*s.total) && others >= s.asked) return Diagnosis{Cause::outside, sizes};
  return Diagnosis{filled_by(s.asked, *s.total), sizes};
}

/// More in one piece than any card has.
Answer by_size_of_cards(const Failure& f, const Sums& s) {
  constexpr double kMostCardsBytes = 80 * kGiB;
  if (s.total || s.free || s.allowed || s.asked < kMostCardsBytes) return std::nullopt;
  if (!s.allocated && f.wording->otherwise != Cause::unknown) return std::nullopt;
  // The largest have 288 GB (2025); Apple's share the host's memory.
  constexpr double kNoCardBytes = 270 * kGiB;
  const double before = f.figures.get(Figure::weights).value_or(0) + f.figures.get(Figure::kv_cache).value_or(0);
  if (!s.allocated && s.asked > kNoCardBytes && platform_of(f).maker != Maker::apple)
    return Diagnosis{Cause::too_big,
                     fmt::format("{} were requested at once, which no card has{}", size_words(s.asked),
                                 before > 0 && before * 4 < s.asked
                                     ? fmt::format("; the weights or KV cache, of {}, are not what is too large: the "
                                                   "buffer for computing is (a smaller batch: -ub)",
                                                   size_words(before))
                                     : "")};
  if (!s.allocated)
    return Diagnosis{Cause::unknown,
                     fmt::format("{} were requested at once, which few cards have in all; the message does "
                                 "not say what this device has",
                                 size_words(s.asked))};
  return Diagnosis{Cause::too_big,
                   fmt::format("{} were requested at once while {} were allocated, and few cards have as much",
                               size_words(s.asked), size_words(*s.allocated))};
}

/// The program sees less memory than the device has: a partition or the driver withholds the rest. Several cards give a
/// multiple of one.
Answer by_capacity(const Failure& f, const Sums& s) {
  const double capacity = f.remarks.capacity;
  if (!s.total || capacity < 1.5 * *s.total || s.asked > capacity || s.asked <= s.free.value_or(*s.total))
    return std::nullopt;
  const double times = capacity / *s.total;
  if (std::abs(times - std::round(times)) < 0.04 * times) return std::nullopt;
  return Diagnosis{
      Cause::limit,
      fmt::format("{} were requested; the program is shown {} of memory, and the text says that the device has "
                  "{}: something keeps it from the rest",
                  size_words(s.asked), size_words(*s.total), size_words(capacity))};
}

/// What is counted exceeds a bound that was set for a part of the device, or for one piece.
Answer by_bound(const Failure& f, const Sums& s) {
  if (!f.wording->text.empty() || !s.allowed || s.asked >= kImpossibleBytes) return std::nullopt;
  if (f.wording->name == "statement_piece" && s.asked > *s.allowed)
    return Diagnosis{Cause::limit, fmt::format("{} were requested in one piece, and no piece may have more than {}",
                                               size_words(s.asked), size_words(*s.allowed))};
  if (s.asked > *s.allowed && !s.total && !s.free && !s.allocated && has_any(lower(f.text), "limit|allowed|quota"))
    return Diagnosis{Cause::limit, fmt::format("{} were requested, and {} are allowed in all", size_words(s.asked),
                                               size_words(*s.allowed))};
  const double used = s.used.value_or(0);
  if (used + s.asked <= *s.allowed || used * 2 < *s.allowed) return std::nullopt;
  const std::string sum = used > *s.allowed
                              ? size_words(used) + " would be in use"
                              : fmt::format("{} were in use and {} requested, which is {}", size_words(used),
                                            size_words(s.asked), size_words(used + s.asked));
  return Diagnosis{Cause::limit, fmt::format("{}, and {} are allowed to this program: its own limit, not the device's",
                                             sum, size_words(*s.allowed))};
}

/// A table in the text shows that memory was not short.
Answer by_contradiction(const Failure& f, const Sums& s) {
  if (f.used_line == 0 || !s.total || !s.used || s.free != 0.0 || *s.used * 20 > *s.total) return std::nullopt;
  return Diagnosis{
      Cause::unknown,
      fmt::format("it found nothing free, but according to the table of nvidia-smi in line {} only {} of the device's "
                  "{} are in use: memory is not short, and the program could not ask the device",
                  f.used_line, size_words(*s.used), size_words(*s.total)),
      "whether the driver is new enough for the CUDA that the program was built with (nvidia-smi shows the highest "
      "version that it supports), and whether another program can use the device at all"};
}

/// A setting in the text reserves most of the device.
Answer by_setting(const Failure& f, const Sums& s) {
  const double aside = f.remarks.set_aside;
  if (aside <= 0 || !s.total || s.free || s.allocated || aside < 0.85 * *s.total) return std::nullopt;
  return Diagnosis{Cause::limit,
                   fmt::format("the text sets {}, which takes {} of the device's {} at once: more than the "
                               "desktop, the driver and others leave of it",
                               f.remarks.settings, size_words(aside), size_words(*s.total))};
}

/// The program had reserved a part of the device, and that part ran out.
Answer by_pool(const Failure& f, const Sums& s) {
  if (f.wording->name != "statement_pool" || (s.total && s.asked >= *s.total)) return std::nullopt;
  return Diagnosis{Cause::limit, fmt::format("{}what ran out is the pool that the program set aside, not the device{}",
                                             s.asked > 0 ? fmt::format("{} were requested; ", size_words(s.asked)) : "",
                                             s.free ? fmt::format(", which had {} free", size_words(*s.free)) : "")};
}

/// What the surrounding text says about the program's need and the card, if the failure's figures show no more.
Answer by_remarks(const Failure& f, const Sums& s) {
  constexpr double kUsualCardBytes = 32 * kGiB;
  const bool has_named = f.used_line == 0 && !f.others.empty() && !f.may_name_itself;
  if (s.allocated || s.used || f.figures.get(Figure::outside) || has_named) return std::nullopt;
  const double planned =
      std::max(f.figures.get(Figure::planned).value_or(0),
               f.figures.get(Figure::weights).value_or(0) + f.figures.get(Figure::kv_cache).value_or(0));
  // A small part of a plan that fits failed: the rest of the plan had filled the device.
  if (s.total && planned > *s.total * kFills && planned <= *s.total && s.asked > 0 && s.asked * 2 < planned) {
    const std::string rest = size_words(*s.total - planned);
    return Diagnosis{
        Cause::full,
        fmt::format("{} were requested, and the program needs {} of the {}'s {}, as the text says: {}",
                    size_words(s.asked), size_words(planned), f.remarks.is_gtt ? "GTT" : "device", size_words(*s.total),
                    s.asked > *s.total - planned
                        ? rest + " are beside that, of which the driver keeps some back"
                        : "the " + rest +
                              " beside that would be enough, but the driver keeps some back, and the rest "
                              "may be in pieces")};
  }
  // Desktops and drivers take some memory, too.
  if (s.total && planned > *s.total * 0.9)
    return Diagnosis{Cause::too_big, fmt::format("{} were needed in all, as the text says, and the device has {}",
                                                 size_words(planned), size_words(*s.total))};
  if (!s.total && !s.free && planned >= kUsualCardBytes)
    return Diagnosis{Cause::too_big, fmt::format("{} were needed in all, as the text says, and few cards have as much",
                                                 size_words(planned))};
  if (s.total && !s.free && s.asked * 2 >= *s.total)
    return Diagnosis{Cause::too_big, fmt::format("{} were requested at once, and the device has {} in all",
                                                 size_words(s.asked), size_words(*s.total))};
  return std::nullopt;
}

/// What others hold is reported, as one figure or by named processes.
Answer by_reported_others(const Failure& f, const Sums& s) {
  const bool is_named = f.used_line == 0 && !f.may_name_itself && s.others > 0 && s.total;
  const double outside = f.figures.get(Figure::outside).value_or(is_named ? s.others : 0);
  if (outside <= 0 || s.allocated || outside <= ordinary_outside_bytes(s.total.value_or(outside))) return std::nullopt;
  if (s.total && s.asked > 0 && *s.total - outside >= s.asked) return std::nullopt;
  return Diagnosis{
      Cause::outside,
      fmt::format("{}others held {}{}{}{}", s.asked > 0 ? fmt::format("{} were requested; ", size_words(s.asked)) : "",
                  size_words(outside), f.others.empty() ? "" : fmt::format(" ({})", processes_words(f.others)),
                  s.total ? fmt::format(" of the device's {}", size_words(*s.total)) : "",
                  s.free ? fmt::format(", and {} were free", size_words(*s.free)) : "")};
}

/// The total memory in use is reported, at the moment of the failure.
Answer by_use(const Failure& f, const Sums& s) {
  if (!s.used || !s.total || f.used_line > 0) return std::nullopt;
  if (*s.used > *s.total * 1.01)
    return Diagnosis{Cause::too_big, fmt::format("{} are needed, but only {} are available", size_words(*s.used),
                                                 size_words(*s.total))};
  const double rest = std::max(0.0, *s.total - *s.used);
  const bool is_full = rest <= *s.total / 20;
  if (s.asked > 0 && s.asked * 4 <= rest && *s.used * 2 <= *s.total)
    return Diagnosis{
        Cause::unknown,
        fmt::format("{} were requested, and only {} of the device's {} were in use: the device had room, and "
                    "the message does not say what refused it",
                    size_words(s.asked), size_words(*s.used), size_words(*s.total)),
        "whether it is a program of 32 bits (its address space ends at 2 to 4 GiB), whether a limit is set, "
        "and whether another version of the driver does the same"};
  if (!is_full && s.asked <= rest) return std::nullopt;
  const std::string words =
      fmt::format("{} of the device's {} were in use{}", size_words(*s.used), size_words(*s.total),
                  s.asked > 0 ? fmt::format(" when {} were requested", size_words(s.asked)) : "");
  if (is_full && s.held() * 4 > *s.used * 3)
    return Diagnosis{
        s.asked > 0 ? filled_by(s.asked, *s.total) : Cause::full,
        fmt::format("{}, {} of them by this allocator", words.substr(0, words.find(';')), size_words(s.held()))};
  if (filled_by(s.asked, *s.total) == Cause::too_big) return Diagnosis{Cause::too_big, words};
  return Diagnosis{Cause::unknown, fmt::format("{}{}; the message does not say who holds them", words,
                                               is_full ? ": the device was full before" : "")};
}

/// Only the free memory is reported.
Answer by_free(const Failure& f, const Sums& s) {
  if (f.wording->otherwise != Cause::unknown || !s.free || s.total || s.allocated || s.asked <= 0) return std::nullopt;
  const std::string sizes = fmt::format("{} were requested and {} were free", size_words(s.asked), size_words(*s.free));
  if (s.asked > *s.free) return Diagnosis{Cause::unknown, sizes + "; the message does not say who holds the rest"};
  if (!s.has_room_on_device()) return std::nullopt;
  return Diagnosis{
      Cause::unknown, sizes + ": there was room, and the message does not say what refused it",
      "how large an allocation the driver allows (some allow less than 4 GiB), whether a limit is set, and "
      "whether another version of the driver does the same"};
}

/// Such a small request is refused only if nothing is left, or for another reason.
Answer by_tiny_request(const Failure& f, const Sums& s) {
  constexpr double kTinyBytes = kMiB;
  if (s.asked <= 0 || s.asked > kTinyBytes || s.free || !f.wording->text.empty()) return std::nullopt;
  return Diagnosis{Cause::unknown,
                   fmt::format("only {} were requested: either all was taken before, or the driver refused for another "
                               "reason (a type of memory that it does not have, a damaged state)",
                               size_words(s.asked))};
}

/// A small request on a device that others may fill.
Answer by_little_room(const Failure& f, const Sums& s) {
  if (!s.total || !s.free || s.asked <= *s.free) return std::nullopt;
  const bool is_known = !f.wording->text.empty();
  if (is_known && (f.wording->otherwise != Cause::too_big || filled_by(s.asked, *s.total) != Cause::full))
    return std::nullopt;
  return Diagnosis{
      Cause::unknown,
      fmt::format("{} were requested, and {} of the device's {} were free; the message does not say who holds "
                  "the rest",
                  size_words(s.asked), size_words(*s.free), size_words(*s.total))};
}

using Rule = Answer (*)(const Failure&, const Sums&);
template <class... Each>
constexpr std::array<Rule, sizeof...(Each)> rules(Each... each) {
  return {each...};
}

/// The first rule that applies decides; docs/explain.md lists them in this order, that of the questions that figures
/// can answer: can it ever fit, was there room on the device or in the cache, did a limit block it although there was,
/// and who holds the rest?
constexpr auto kDeviceRules =
    rules(by_contradiction, by_capacity, by_component, by_setting, by_bound, by_pool, by_kv_cache, by_total_need,
          by_size_of_device, by_pieces, by_room_on_device, by_room_beside_own, by_cache, by_limit, by_piece_size,
          by_intel_piece, by_outside_figure, by_others, by_what_is_outside, by_own_need, by_start, by_table,
          by_partial_figures, by_process, by_remarks, by_reported_others, by_use, by_little_room, by_free,
          by_size_of_cards, by_tiny_request);
/// Those that apply where the size of the request is not known, too.
constexpr auto kWithoutRequest = rules(by_contradiction, by_component, by_setting, by_bound, by_pool, by_kv_cache,
                                       by_total_need, by_table, by_process, by_remarks, by_reported_others, by_use);

/// False: the figures are inconclusive.
bool diagnose_device(Failure& f) {
  const Sums sums = sums_of(f);
  for (const Rule rule : kDeviceRules) {
    if (sums.asked <= 0 && std::count(kWithoutRequest.begin(), kWithoutRequest.end(), rule) == 0) continue;
    if (Answer answer = rule(f, sums)) {
      f.cause = answer->cause;
      f.because = std::move(answer->because);
      f.missing_evidence = std::move(answer->missing_evidence);
      return true;
    }
  }
  return false;
}

/// What the text around a failure shows, if the figures are inconclusive.
void add_remarks(Failure& f) {
  if (f.cause != Cause::unknown) return;
  const double asked = f.figures.get(Figure::asked).value_or(0);
  if (const double before = f.remarks.free_before; asked > 0 && before > asked)
    f.because += fmt::format(
        "; {} were free by a line above: if nothing was taken since, the device had room, and a "
        "limit of the driver, or the host's memory, refused it",
        size_words(before));
  if (!f.remarks.settings.empty()) f.because += fmt::format("; the text sets {}", f.remarks.settings);
  if (is_handle(f))
    f.because +=
        "; it asked for an object that takes hardly any memory: the device was already full, or the program "
        "keeps such objects and has reached a limit, if it fails after many of them";
  if (f.remarks.less_works.empty()) return;
  f.cause = Cause::too_big;
  f.because += fmt::format(", and the text says that less works: \"{}\"", f.remarks.less_works);
}

}  // namespace

bool takes_device_at_start(const Wording& wording) {
  return wording.role == Role::device && (wording.program.find("XLA") != std::string_view::npos ||
                                          wording.program.find("TensorFlow") != std::string_view::npos);
}

std::string size_words(double bytes) {
  if (bytes >= kTiB * kMiB) return fmt::format("{:.1f} EiB", bytes / (kTiB * kMiB));
  if (bytes >= kTiB * kKiB) return fmt::format("{:.2f} PiB", bytes / (kTiB * kKiB));
  if (bytes >= kTiB) return fmt::format("{:.2f} TiB", bytes / kTiB);
  if (bytes >= kGiB) return fmt::format("{:.2f} GiB", bytes / kGiB);
  return format_size(static_cast<std::uint64_t>(std::max(bytes, 0.0)));
}

double ordinary_outside_bytes(double total_bytes) {
  return std::max({1.5 * kGiB, std::min(2 * kGiB, total_bytes / 8), total_bytes / 10});
}

void find_cause(Failure& failure) {
  if (failure.is_pinned && failure.figures.count() == 0) {
    failure.cause = Cause::host;
    failure.because = "it failed while host memory was being pinned: the driver could not lock that much of the host's";
    return;
  }
  if (const auto planned = failure.figures.get(Figure::planned); planned && *planned >= kImpossibleBytes) {
    failure.cause = Cause::bad_size;
    failure.because = fmt::format("{} were needed, as the text says, which no machine has: the size itself is wrong",
                                  size_words(*planned));
    return;
  }
  const std::string line = lower(failure.text);
  const auto words = words_of(line);
  if (std::any_of(words.begin(), words.end(), [](const Word& word) { return is_any(word.text, "nan|-nan"); })) {
    failure.cause = Cause::bad_size;
    failure.because =
        "the size that was computed is not a number (NaN): the estimate is wrong, and memory is not short";
    return;
  }
  if (asks_for_less_than_nothing(line)) {
    failure.cause = Cause::bad_size;
    failure.because =
        "a negative size was requested: its computation overflowed or used a wrong value, and memory is not short";
    return;
  }
  if (is_host_code(failure)) return diagnose_host_code(failure);
  if (failure.wording->role == Role::host) return diagnose_host(failure);
  if (failure.wording->role == Role::resource) return diagnose_resource(failure);
  if (!diagnose_device(failure)) {
    failure.cause = failure.wording->otherwise;
    // Memory that fits the device is too big only next to other memory, which no figure shows.
    const auto asked = failure.figures.get(Figure::asked);
    const auto total = failure.figures.get(Figure::total);
    if (failure.wording->text.empty() && failure.cause == Cause::too_big &&
        (failure.figures.count() == 0 ||
         (asked ? total && *asked * 2 < *total : takes_device_at_start(*failure.wording))))
      failure.cause = Cause::unknown;
    failure.because = wording_words(failure);
    add_remarks(failure);
  }
  const double free = failure.figures.get(Figure::free).value_or(0);
  if (failure.cause == Cause::unknown && !failure.remarks.in_pieces.empty() &&
      (!failure.figures.get(Figure::free) || free >= failure.figures.get(Figure::asked).value_or(0))) {
    failure.cause = Cause::fragmentation;
    failure.because += fmt::format(", and the text says that it is in pieces: \"{}\"", failure.remarks.in_pieces);
    failure.missing_evidence.clear();
  }
  if (failure.cause == Cause::unknown && !failure.remarks.shared.empty() &&
      free <= failure.figures.get(Figure::asked).value_or(free)) {
    failure.cause = Cause::outside;
    failure.because += fmt::format(", and the text says that others use the device: \"{}\"", failure.remarks.shared);
  }
  if (!failure.largest.empty()) failure.because += "; " + holdings_words(failure.largest);
}

}  // namespace vramtrack::explain

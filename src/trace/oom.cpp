#include "trace/oom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <unordered_map>

#include "core/format.hpp"
#include "core/order.hpp"
#include "core/room.hpp"
#include "core/units.hpp"
#include "trace/assess.hpp"
#include "trace/iterations.hpp"
#include "trace/timeline.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kLeastValleys = 3;
constexpr std::size_t kMostValleys = 12;
/// The program must have iterated this often before what its sites keep is called a leak; more often if an iteration
/// keeps more than it releases, because layers written as a plain loop look the same.
constexpr std::size_t kLeastRounds = 3;
constexpr std::size_t kManyRounds = 10;

/// Contexts and library kernels take this much of a device without any leak.
std::uint64_t ordinary_outside_bytes(std::uint64_t capacity_bytes) {
  constexpr std::uint64_t kOrdinary = 2ULL << 30;
  return std::max(std::min(kOrdinary, capacity_bytes / 8), capacity_bytes / 10);
}

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

/// How much the allocator requests from the driver for a block that does not fit (PyTorch's kSmallBuffer, kLargeBuffer
/// and kRoundLarge; the pages of expandable segments).
std::uint64_t segment_for(std::uint64_t asked_bytes, bool is_expandable) {
  if (asked_bytes <= kBytesPerMiB) return 2 * kBytesPerMiB;
  if (is_expandable || asked_bytes < 10 * kBytesPerMiB) return rounded_up(asked_bytes, 20 * kBytesPerMiB);
  return rounded_up(asked_bytes, 2 * kBytesPerMiB);
}

/// The limit of a process that was refused although the device had room, with a margin because drivers keep a little.
std::optional<OomReport::Limit> limit_of(const OomReport& r, const Snapshot& snapshot) {
  const bool is_expandable =
      std::any_of(snapshot.segments.begin(), snapshot.segments.end(),
                  [&r](const Segment& segment) { return segment.device == r.device && segment.is_expandable; });
  const std::uint64_t segment = segment_for(r.asked_bytes, is_expandable);
  const auto reserved = static_cast<std::uint64_t>(std::max<std::int64_t>(r.at.reserved_bytes, 0));
  const std::uint64_t spare = 32 * kBytesPerMiB + segment / 32;
  if (snapshot.oom && snapshot.oom->device == r.device && snapshot.oom->allowed_bytes) {
    const std::uint64_t allowed = *snapshot.oom->allowed_bytes;
    if (r.device_free_bytes < segment || reserved + segment <= allowed) return std::nullopt;
    return OomReport::Limit{allowed, allowed + 1};
  }
  if (r.device_free_bytes < segment + spare) return std::nullopt;
  return OomReport::Limit{reserved, reserved + segment};
}

std::string percent_words(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.1f} %",
                     100 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1)));
}

/// The limit as text: "at 819.2 MiB", "between 700.0 MiB and 900.0 MiB (8.5 % to 11.0 % of the device)".
std::string limit_words(const OomReport& r) {
  const auto [least, most] = *r.limit;
  const bool is_narrow = format_size(least) == format_size(most);
  std::string out = is_narrow ? fmt::format("at {}", format_size(least))
                              : fmt::format("between {} and {}", format_size(least), format_size(most));
  if (!r.capacity_bytes) return out;
  if (is_narrow) return fmt::format("{} ({} of the device)", out, percent_words(least, *r.capacity_bytes));
  return fmt::format("{} ({} to {} of the device)", out, percent_words(least, *r.capacity_bytes),
                     percent_words(most, *r.capacity_bytes));
}

/// Whether the value rises over the quiet moments, including their later half. It may stay level (a branch that is not
/// always taken) and release a little (a tenth of its rise), but it must rise three times, or every time if there are
/// fewer: memory allocated once, and a warm-up, are not leaks.
bool keeps_rising(const std::vector<std::int64_t>& bytes) {
  std::int64_t up = 0;
  std::int64_t down = 0;
  std::size_t rises = 0;
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    const std::int64_t step = bytes[i] - bytes[i - 1];
    (step > 0 ? up : down) += step;
    rises += step > 0 ? 1 : 0;
  }
  const std::int64_t rise = bytes.back() - bytes.front();
  const std::int64_t later = bytes.back() - bytes[bytes.size() / 2];
  return rise > 0 && -down * 10 <= up && rises >= std::min<std::size_t>(3, bytes.size() - 1) && later * 4 >= rise;
}

bool is_called_by(const Symbols& symbols, StackId stack, std::initializer_list<std::string_view> files) {
  const auto frames = symbols.stack(stack);
  return std::any_of(frames.begin(), frames.end(), [&](FrameId frame) {
    return is_framework(symbols, frame) && std::any_of(files.begin(), files.end(), [&](std::string_view file) {
             return symbols.file(frame).find(file) != std::string_view::npos;
           });
  });
}

/// The last quiet moment in each iteration of the program, as far as `stack` shows the iterations. Empty if all may be
/// within one call, in which layers keep their activations and an optimizer creates its state.
std::vector<std::size_t> iterations_of(const Iterations& iterations, const Symbols& symbols, StackId stack,
                                       std::span<const Moment> valleys, std::uint64_t last, bool gives_back) {
  std::vector<std::size_t> out;
  const bool by_rounds = iterations.rounds(stack, last) >= (gives_back ? kLeastRounds : kManyRounds);
  const bool by_steps = iterations.annotated_steps(last) >= kLeastRounds;
  if (!by_rounds && !by_steps) {
    // One line may contain the whole loop. If it releases more than it keeps, and calls no layers, it iterates.
    if (iterations.can_tell() || !gives_back || is_called_by(symbols, stack, {"/nn/modules/", "/optim/"})) return out;
    for (std::size_t i = 0; i < valleys.size(); ++i) out.push_back(i);
    return out;
  }
  std::size_t before = 0;
  for (std::size_t i = 0; i < valleys.size(); ++i) {
    const std::uint64_t at = valleys[i].event;
    const std::size_t now = by_rounds ? iterations.rounds(stack, at) : iterations.annotated_steps(at);
    if (!out.empty() && now == before) out.pop_back();
    out.push_back(i);
    before = now;
  }
  return out;
}

/// Finds sites that hold ever more at the quiet moments, that is, memory kept across iterations.
void find_risers(OomReport& r, const Snapshot& snapshot, const Symbols& symbols, const Replay& replay,
                 std::span<const Moment> valleys, std::uint64_t last) {
  std::vector<std::uint64_t> events;
  for (const Moment& valley : valleys) events.push_back(valley.event);
  const std::vector<Profile> profiles = profiles_at(replay, events);
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>> by_stack;
  for (std::size_t n = 0; n < profiles.size(); ++n)
    for (const StackBytes& held : profiles[n]) {
      auto& bytes = by_stack[index_of(held.stack)];
      bytes.resize(profiles.size());
      bytes[n] = held.bytes;
    }
  std::erase_if(by_stack, [](const auto& site) { return !keeps_rising(site.second); });
  if (by_stack.empty()) return;
  std::int64_t risen = 0;
  for (const auto& [stack, bytes] : by_stack) risen += bytes.back() - bytes.front();
  // An iteration usually releases more than it keeps; otherwise there could not be many iterations.
  const bool gives_back = risen <= r.given_back_bytes;
  const Iterations iterations(snapshot, r.device, symbols, events.front(), last);
  for (const auto& [stack, bytes] : by_stack) {
    const auto chosen = iterations_of(iterations, symbols, StackId{stack}, valleys, last, gives_back);
    std::vector<std::int64_t> over_iterations;
    for (const std::size_t n : chosen) over_iterations.push_back(bytes[n]);
    if (over_iterations.size() >= kLeastValleys && keeps_rising(over_iterations))
      r.risers.push_back({StackId{stack}, bytes.front(), bytes.back()});
  }
  order(r.risers, [](const OomReport::Riser& a, const OomReport::Riser& b) {
    const std::int64_t by_a = a.to_bytes - a.from_bytes;
    const std::int64_t by_b = b.to_bytes - b.from_bytes;
    return by_a != by_b ? by_a > by_b : a.stack < b.stack;
  });
}

/// The figures that determine what filled the memory.
struct Evidence {
  std::uint64_t pending_bytes = 0;
  std::uint64_t device_room_bytes = 0;  ///< free on the device; of no use beyond a limit
  std::int64_t risen_bytes = 0;         ///< rise of the sites that kept rising
  bool is_much = false;                 ///< the rise is enough to have filled the memory
  bool makes_room = false;              ///< without the rise and its rounding, the request would have fit
  std::string asked;
  std::string rose;
};

Evidence evidence_of(const OomReport& r) {
  Evidence out;
  const auto live = static_cast<std::uint64_t>(std::max<std::int64_t>(r.at.live_bytes, 0));
  out.pending_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(r.at.pending_bytes, 0));
  for (const OomReport::Riser& riser : r.risers) out.risen_bytes += riser.to_bytes - riser.from_bytes;
  // If some sites rise while others release as much, memory only moves; it does not grow.
  const bool is_more = r.valley_rise_bytes * 2 >= out.risen_bytes;
  // The rise must be a tenth of what was live: a smaller one did not fill the device.
  out.is_much = r.valley_count >= kLeastValleys && is_more && out.risen_bytes * 10 >= r.at.live_bytes &&
                out.risen_bytes >= static_cast<std::int64_t>(kBytesPerMiB);
  const double rounded = live > 0 ? 1 + static_cast<double>(r.rounding_bytes) / static_cast<double>(live) : 1;
  out.device_room_bytes = r.limit ? 0 : r.device_free_bytes;
  out.makes_room = r.cached_bytes + out.device_room_bytes + out.pending_bytes +
                       static_cast<std::uint64_t>(rounded * static_cast<double>(out.risen_bytes)) >=
                   r.asked_bytes;
  out.asked = fmt::format("{} were requested while {} were live", format_size(r.asked_bytes), format_size(live));
  out.rose = fmt::format("{} kept rising over {} quiet moments of the trace, by {} in total",
                         format_count(r.risers.size(), "site"), r.valley_count, format_size(out.risen_bytes));
  return out;
}

struct Conclusion {
  Condition condition;
  std::string because;
  std::string next_step;
};

Conclusion without_failure(const OomReport& r, const Evidence& e) {
  const std::string none = r.has_trace ? "the trace has no oom entry; these are the figures at its end"
                                       : "the file has no trace and no oom entry; these are the figures of its blocks";
  if (e.is_much)
    return {Condition::steady, fmt::format("{}. {}", none, e.rose),
            "to tell a leak from a warm-up, compare snapshots of three later steps: vramtrack snapshot leaks A B C"};
  return {Condition::steady, none,
          "record until it fails: torch._C._cuda_attach_out_of_memory_observer, or dump in the except block"};
}

Conclusion leaked(const OomReport& r, const Evidence& e) {
  return {Condition::leak,
          fmt::format("{}; {}{}", e.asked, e.rose,
                      r.limit ? fmt::format(", up to a limit of this process {}", limit_words(r)) : ""),
          "look at the lines that rose, from the top: what they allocate is kept across iterations"};
}

Conclusion waited_for_a_stream(const Evidence& e) {
  return {Condition::pending,
          fmt::format("{}, and {} were freed but waited for a stream", e.asked, format_size(e.pending_bytes)),
          "synchronise the stream passed to record_stream() before the allocation, or once per step"};
}

Conclusion in_pieces(const OomReport& r, const Evidence& e, const Snapshot& snapshot) {
  return {
      Condition::fragmentation,
      fmt::format("{}; {} were reserved and free and {}, but not in one piece", e.asked, format_size(r.cached_bytes),
                  r.limit ? "a limit of this process allowed no more"
                          : format_size(e.device_room_bytes) + " free on the device"),
      fragmentation_advice(snapshot.settings)};
}

Conclusion met_its_limit(const OomReport& r, const Evidence& e) {
  return {
      Condition::limit,
      fmt::format("{} and {} were free on the device: a limit of this process stopped it, {}", e.asked,
                  format_size(r.device_free_bytes), limit_words(r)),
      "raise or remove the limit (torch.cuda.set_per_process_memory_fraction, per_process_memory_fraction in "
      "PYTORCH_ALLOC_CONF, MPS), or stay below it with a smaller batch, shorter sequences or activation checkpointing"};
}

Conclusion used_by_others(const OomReport& r, const Evidence& e) {
  return {Condition::outside,
          fmt::format("{}; {} of the device's {} ({}) are used outside this allocator", e.asked,
                      format_size(*r.outside_bytes), format_size(*r.capacity_bytes),
                      percent_words(*r.outside_bytes, *r.capacity_bytes)),
          "look for other processes on the device ('vramtrack watch --once'), NCCL's buffers, and libraries with pools "
          "of their own"};
}

/// Blames the program's own need: the requested block, or everything that it holds.
Conclusion own_need(const OomReport& r, const Evidence& e) {
  const std::uint64_t there =
      static_cast<std::uint64_t>(std::max<std::int64_t>(r.at.reserved_bytes, 0)) + r.device_free_bytes;
  std::string because =
      fmt::format("{}, and only {} were free", e.asked, format_size(r.cached_bytes + r.device_free_bytes));
  if (e.is_much)
    because += fmt::format("; {} rose by {} over the trace, but the rest would not have fitted either",
                           format_count(r.risers.size(), "site"), format_size(e.risen_bytes));
  if (r.rounding_bytes >= r.asked_bytes)
    because += fmt::format("; {} are lost to rounding up of block sizes", format_size(r.rounding_bytes));
  if (!r.capacity_bytes)
    because += fmt::format(
        "; this allocator's share and the free memory are {} together, and what a larger device has "
        "beyond that is used outside it",
        format_size(there));
  if (r.has_trace && r.valley_count < kLeastValleys)
    because += fmt::format(" (the trace has {} to compare, too few to tell whether something grew before)",
                           format_count(r.valley_count, "quiet moment"));
  const bool is_large = is_too_big(static_cast<double>(r.asked_bytes), static_cast<double>(there));
  return {is_large ? Condition::too_big : Condition::full, std::move(because),
          "use a smaller batch or sequence, activation checkpointing or a lower precision, or shard the model; the "
          "sites below show what holds most"};
}

/// Returns the first conclusion that explains the failure.
Conclusion conclude(const OomReport& r, const Evidence& e, const Snapshot& snapshot) {
  if (snapshot.is_heap_profile)
    return {Condition::steady, "a heap profile shows what is live, and no out-of-memory",
            "pass the message of the failure to vramtrack explain; profiles of two moments before it show what grew: "
            "vramtrack snapshot leaks A B"};
  if (!r.has_oom) return without_failure(r, e);
  if (e.is_much && e.makes_room) return leaked(r, e);
  if (e.pending_bytes >= r.asked_bytes) return waited_for_a_stream(e);
  if (r.cached_bytes + e.device_room_bytes >= r.asked_bytes && r.cached_bytes > e.device_room_bytes)
    return in_pieces(r, e, snapshot);
  if (r.limit) return met_its_limit(r, e);
  if (r.outside_bytes && *r.outside_bytes > ordinary_outside_bytes(*r.capacity_bytes) &&
      *r.outside_bytes >= r.asked_bytes)
    return used_by_others(r, e);
  return own_need(r, e);
}

void judge(OomReport& r, const Snapshot& snapshot) {
  const Evidence evidence = evidence_of(r);
  if (!evidence.is_much) r.risers.clear();
  Conclusion found = conclude(r, evidence, snapshot);
  r.condition = found.condition;
  r.because = std::move(found.because);
  r.next_step = std::move(found.next_step);
}

}  // namespace

std::vector<std::uint32_t> oom_devices(const Snapshot& snapshot, std::optional<std::uint32_t> device) {
  if (device) return {*device};
  std::vector<std::uint32_t> failed;
  for (const std::uint32_t each : traced_devices(snapshot))
    if (snapshot.trace_of(each)->counts[static_cast<std::size_t>(Action::oom)] > 0) failed.push_back(each);
  if (!failed.empty()) return failed;
  if (snapshot.oom) return {snapshot.oom->device};
  std::vector<std::uint32_t> traced = traced_devices(snapshot);
  return traced.empty() ? known_devices(snapshot) : traced;
}

namespace {

/// Takes the figures at the last oom entry, else at the end of the trace, else from the blocks; returns the entry.
std::uint64_t measure(OomReport& r, const Snapshot& snapshot, const Replay& replay) {
  std::uint64_t oom_event = 0;
  r.at = replay.begin();
  r.has_trace = replay.event_count() > 0;
  replay.run([&](const AllocEvent& event, const Change&, const Moment& now) {
    if (event.action == Action::oom) {
      r.has_oom = true;
      ++r.oom_count;
      oom_event = now.event;
      r.at = now;
      r.asked_bytes = event.size_bytes;
      r.device_free_bytes = event.address;
      r.asked_by = event.stack;
      r.asked_from = snapshot.origins[event.origin];
    } else if (!r.has_oom) {
      r.at = now;
      oom_event = now.event;
    }
  });
  if (!r.has_oom && snapshot.oom && snapshot.oom->device == r.device) {
    r.has_oom = true;
    r.oom_count = 1;
    r.asked_bytes = snapshot.oom->asked_bytes;
    r.device_free_bytes = snapshot.oom->device_free_bytes;
  }
  return oom_event;
}

}  // namespace

OomReport oom_of(const Snapshot& snapshot, std::uint32_t device, Symbols& symbols,
                 std::optional<std::uint64_t> capacity_bytes) {
  OomReport r;
  r.device = device;
  const Replay replay(snapshot, device, symbols);
  const std::uint64_t oom_event = measure(r, snapshot, replay);
  r.capacity_bytes = capacity_bytes;
  if (!capacity_bytes && snapshot.oom && snapshot.oom->device == device)
    r.capacity_bytes = snapshot.oom->device_total_bytes;
  if (r.has_trace) {
    const std::uint64_t moments[] = {oom_event};
    r.sites = profiles_at(replay, moments).front();
  } else {
    r.sites = replay.live_at_begin();
  }
  const auto free_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, r.at.reserved_bytes - r.at.live_bytes - r.at.pending_bytes));
  // The trace has requested sizes without rounding; the snapshot's blocks have both.
  const Usage usage = total_usage(snapshot, device);
  if (usage.requested_bytes > 0 && r.at.live_bytes > 0)
    r.rounding_bytes = std::min(free_bytes, static_cast<std::uint64_t>(static_cast<double>(r.at.live_bytes) /
                                                                       static_cast<double>(usage.requested_bytes) *
                                                                       static_cast<double>(usage.internal_bytes())));
  r.cached_bytes = free_bytes - r.rounding_bytes;
  if (r.capacity_bytes && r.has_oom) {
    const std::uint64_t known =
        static_cast<std::uint64_t>(std::max<std::int64_t>(r.at.reserved_bytes, 0)) + r.device_free_bytes;
    r.outside_bytes = *r.capacity_bytes > known ? *r.capacity_bytes - known : 0;
  }
  if (r.has_oom) r.limit = limit_of(r, snapshot);
  if (r.has_trace) {
    TimelineOptions options;
    options.points = 1;
    options.peaks = 0;
    Timeline timeline = timeline_of(snapshot, device, symbols, options);
    std::vector<Moment> valleys = std::move(timeline.valleys);
    std::erase_if(valleys, [&](const Moment& valley) { return valley.event > oom_event; });
    r.valley_count = valleys.size();
    // Sum only the movements between the first and the last valley.
    for (std::size_t i = 1; i < valleys.size(); ++i) r.given_back_bytes += timeline.fall_bytes[i];
    if (!valleys.empty()) r.valley_rise_bytes = valleys.back().live_bytes - valleys.front().live_bytes;
    // If there are many, take a dozen, evenly spread from the first to the last. That is enough, because a leak rises
    // between any two.
    if (valleys.size() > kMostValleys) {
      std::vector<Moment> some;
      for (std::size_t i = 0; i < kMostValleys; ++i)
        some.push_back(valleys[i * (valleys.size() - 1) / (kMostValleys - 1)]);
      valleys = std::move(some);
    }
    if (r.valley_count >= kLeastValleys) find_risers(r, snapshot, symbols, replay, valleys, oom_event);
  }
  judge(r, snapshot);
  return r;
}

}  // namespace vramtrack::trace

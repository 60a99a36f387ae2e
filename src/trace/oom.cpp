#include "trace/oom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/format.hpp"
#include "core/units.hpp"
#include "trace/assess.hpp"
#include "trace/timeline.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kLeastValleys = 3;
constexpr std::size_t kMostValleys = 12;
/// Contexts and library kernels take this much of a device without anybody leaking.
constexpr std::uint64_t kOrdinaryOutsideBytes = 2ULL << 30;

/// Does it rise over the quiet moments, and still in their later half? It may stand (a branch that is not always taken)
/// and give back a little (a tenth of what it rose by), and it must rise three times, or each time of fewer: what is
/// made once, and a warm-up, are no leak.
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

/// Sites that hold ever more at the quiet moments: what is kept across iterations.
std::vector<OomReport::Riser> risers_of(const Replay& replay, std::span<const Moment> valleys) {
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
  std::vector<OomReport::Riser> out;
  for (const auto& [stack, bytes] : by_stack)
    if (keeps_rising(bytes)) out.push_back({StackId{stack}, bytes.front(), bytes.back()});
  std::sort(out.begin(), out.end(), [](const OomReport::Riser& a, const OomReport::Riser& b) {
    const std::int64_t by_a = a.to_bytes - a.from_bytes;
    const std::int64_t by_b = b.to_bytes - b.from_bytes;
    return by_a != by_b ? by_a > by_b : a.stack < b.stack;
  });
  return out;
}

void judge(OomReport& r, const Snapshot& snapshot, std::optional<std::uint64_t> capacity_bytes) {
  const auto live = static_cast<std::uint64_t>(std::max<std::int64_t>(r.at.live_bytes, 0));
  const auto pending = static_cast<std::uint64_t>(std::max<std::int64_t>(r.at.pending_bytes, 0));
  const std::string asked =
      fmt::format("{} were requested while {} were live", format_size(r.asked_bytes), format_size(live));
  std::int64_t risen = 0;
  for (const OomReport::Riser& riser : r.risers) risen += riser.to_bytes - riser.from_bytes;
  const auto set = [&r](Condition condition, std::string because, std::string next) {
    r.condition = condition;
    r.because = std::move(because);
    r.next_step = std::move(next);
  };
  // A tenth of what was live, and without it, and what it was rounded up by, there would have been room: less did not
  // fill the device.
  const double rounded = live > 0 ? 1 + static_cast<double>(r.rounding_bytes) / static_cast<double>(live) : 1;
  const std::uint64_t room =
      r.cached_bytes + r.device_free_bytes + pending + static_cast<std::uint64_t>(rounded * static_cast<double>(risen));
  // An iteration gives back more than it keeps, or it would not come to many; where more is kept the quiet moments lie
  // within one, as in a forward pass that keeps the activations of its layers.
  const bool is_iterating = risen <= r.given_back_bytes;
  // Sites that rise while others give back as much are memory on the move, not more of it.
  const bool is_more = r.valley_rise_bytes * 2 >= risen;
  const bool is_much = r.valley_count >= kLeastValleys && is_iterating && is_more && risen * 10 >= r.at.live_bytes &&
                       risen >= static_cast<std::int64_t>(kBytesPerMiB);
  if (!is_much) r.risers.clear();
  if (is_much && (!r.has_oom || room >= r.asked_bytes))
    return set(Condition::leak,
               fmt::format("{}; {} kept rising over {} quiet moments of the trace, by {} in total", asked,
                           format_count(r.risers.size(), "site"), r.valley_count, format_size(risen)),
               "look at the lines that rose, from the top: what they allocate is kept across iterations");
  if (!r.has_oom)
    return set(Condition::steady, "the trace has no oom entry; these are the figures at its end",
               "record until it fails: torch._C._cuda_attach_out_of_memory_observer, or dump in the except block");
  if (pending >= r.asked_bytes)
    return set(Condition::pending,
               fmt::format("{}, and {} were freed but waited for a stream", asked, format_size(pending)),
               "synchronise the stream passed to record_stream() before the allocation, or once per step");
  if (r.cached_bytes + r.device_free_bytes >= r.asked_bytes && r.cached_bytes > r.device_free_bytes)
    return set(Condition::fragmentation,
               fmt::format("{}; {} were reserved and free and {} free on the device, but not in one piece", asked,
                           format_size(r.cached_bytes), format_size(r.device_free_bytes)),
               fragmentation_advice(snapshot.settings));
  if (r.outside_bytes && *r.outside_bytes > std::max(kOrdinaryOutsideBytes, *capacity_bytes / 10) &&
      *r.outside_bytes >= r.asked_bytes)
    return set(
        Condition::outside,
        fmt::format("{}; {} of the device are used outside this allocator", asked, format_size(*r.outside_bytes)),
        "look for other processes on the device ('vramtrack watch --once'), NCCL's buffers, and libraries with pools "
        "of their own");
  std::string because =
      fmt::format("{}, and only {} were free", asked, format_size(r.cached_bytes + r.device_free_bytes));
  if (is_much)
    because += fmt::format("; {} rose by {} over the trace, but the rest would not have fitted either",
                           format_count(r.risers.size(), "site"), format_size(risen));
  if (r.rounding_bytes >= r.asked_bytes)
    because += fmt::format("; {} are lost to rounding up of block sizes", format_size(r.rounding_bytes));
  if (r.valley_count < kLeastValleys)
    because += fmt::format(" (the trace has {} to compare, too few to tell whether something grew before)",
                           format_count(r.valley_count, "quiet moment"));
  set(Condition::too_big, std::move(because),
      "use a smaller batch or sequence, activation checkpointing or a lower precision, or shard the model; the sites "
      "below show what holds most");
}

}  // namespace

std::vector<std::uint32_t> oom_devices(const Snapshot& snapshot, std::optional<std::uint32_t> device) {
  std::vector<std::uint32_t> traced = traced_devices(snapshot, device);
  if (device) return traced;
  std::vector<std::uint32_t> failed;
  for (const std::uint32_t each : traced)
    if (snapshot.trace_of(each)->counts[static_cast<std::size_t>(Action::oom)] > 0) failed.push_back(each);
  return failed.empty() ? traced : failed;
}

OomReport oom_of(const Snapshot& snapshot, std::uint32_t device, Symbols& symbols,
                 std::optional<std::uint64_t> capacity_bytes) {
  OomReport r;
  r.device = device;
  const Replay replay(snapshot, device, symbols);
  r.at = replay.begin();
  std::uint64_t oom_event = 0;
  replay.run([&](const AllocEvent& event, const Change&, const Moment& now) {
    if (event.action == Action::oom) {
      r.has_oom = true;
      ++r.oom_count;
      oom_event = now.event;
      r.at = now;
      r.asked_bytes = event.size_bytes;
      r.device_free_bytes = event.address;
      r.asked_by = event.stack;
    } else if (!r.has_oom) {
      r.at = now;
      oom_event = now.event;
    }
  });
  if (replay.event_count() > 0) {
    const std::uint64_t moments[] = {oom_event};
    r.sites = profiles_at(replay, moments).front();
  } else {
    r.sites = replay.live_at_begin();
  }
  const auto free_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, r.at.reserved_bytes - r.at.live_bytes - r.at.pending_bytes));
  // The trace has what was asked for, not what it was rounded to; the blocks of the snapshot have both.
  const Usage usage = total_usage(snapshot, device);
  if (usage.requested_bytes > 0 && r.at.live_bytes > 0)
    r.rounding_bytes = std::min(free_bytes, static_cast<std::uint64_t>(static_cast<double>(r.at.live_bytes) /
                                                                       static_cast<double>(usage.requested_bytes) *
                                                                       static_cast<double>(usage.internal_bytes())));
  r.cached_bytes = free_bytes - r.rounding_bytes;
  if (capacity_bytes && r.has_oom) {
    const std::uint64_t known =
        static_cast<std::uint64_t>(std::max<std::int64_t>(r.at.reserved_bytes, 0)) + r.device_free_bytes;
    r.outside_bytes = *capacity_bytes > known ? *capacity_bytes - known : 0;
  }
  TimelineOptions options;
  options.points = 1;
  options.peaks = 0;
  Timeline timeline = timeline_of(snapshot, device, symbols, options);
  std::vector<Moment> valleys = std::move(timeline.valleys);
  std::erase_if(valleys, [&](const Moment& valley) { return valley.event > oom_event; });
  r.valley_count = valleys.size();
  // Of the movements between the first of them and the last.
  for (std::size_t i = 1; i < valleys.size(); ++i) r.given_back_bytes += timeline.fall_bytes[i];
  if (!valleys.empty()) r.valley_rise_bytes = valleys.back().live_bytes - valleys.front().live_bytes;
  // Of many a dozen, evenly spread from the first to the last: enough to tell, and a leak rises between any two.
  if (valleys.size() > kMostValleys) {
    std::vector<Moment> some;
    for (std::size_t i = 0; i < kMostValleys; ++i)
      some.push_back(valleys[i * (valleys.size() - 1) / (kMostValleys - 1)]);
    valleys = std::move(some);
  }
  if (r.valley_count >= kLeastValleys) r.risers = risers_of(replay, valleys);
  judge(r, snapshot, capacity_bytes);
  return r;
}

}  // namespace vramtrack::trace

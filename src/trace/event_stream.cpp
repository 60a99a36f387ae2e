#include "trace/event_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/format.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kQuietParts = 6;
/// With fewer stretches, there would be no quiet moments to compare.
constexpr std::size_t kLeastPoints = 24;

StackBytes& at(std::vector<StackBytes>& by_stack, StackId stack) {
  const std::size_t place = index_of(stack);
  if (place >= by_stack.size()) by_stack.resize(std::max(place + 1, by_stack.size() * 2));
  by_stack[place].stack = stack;
  return by_stack[place];
}

/// Returns `profile` sorted by bytes, largest first, without empty entries.
Profile sorted(Profile profile) {
  std::erase_if(profile, [](const StackBytes& held) { return held.bytes == 0 && held.blocks == 0; });
  std::sort(profile.begin(), profile.end(), [](const StackBytes& a, const StackBytes& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
  return profile;
}

}  // namespace

Status refuse_devices(std::size_t count) {
  if (count <= kMostStreamDevices) return {};
  return fail(fmt::format("more than {} devices: this is not an allocation trace", kMostStreamDevices));
}

Result<Change> StreamLive::take(const AllocEvent& event) {
  // No device has more memory than this, and sums of sizes must not overflow.
  moved_bytes_ += event.size_bytes;
  if (event.size_bytes >> 56 != 0 || moved_bytes_ >> 61 != 0)
    return fail(fmt::format("{} bytes: the sizes add up to more than any device can move", event.size_bytes));
  Change change;
  const LiveSet::Held* const held = blocks_.find(event.address);
  if (held != nullptr) {
    change.live_bytes = -static_cast<std::int64_t>(held->bytes);
    change.live_blocks = -1;
    change.stack = held->stack;
  }
  if (event.action == Action::alloc) {
    // The free of the previous block was not recorded; `replaced` reports its owner.
    if (held != nullptr) ++replaced_;
    blocks_.put(event.address, event.size_bytes, event.stack, false);
  } else if (held != nullptr) {
    blocks_.erase(event.address);
  } else {
    ++unknown_frees_;
  }
  ++counts_.counts[static_cast<std::size_t>(event.action)];
  ++counts_.event_count;
  if (event.time_us != kNoTime) {
    if (counts_.first_time_us == kNoTime) counts_.first_time_us = event.time_us;
    counts_.last_time_us = event.time_us;
  }
  counts_.net_bytes += change.live_bytes;
  if (event.action == Action::alloc) counts_.net_bytes += static_cast<std::int64_t>(event.size_bytes);
  if (counts_.net_bytes > counts_.peak_net_bytes) {
    counts_.peak_net_bytes = counts_.net_bytes;
    counts_.peak_event = counts_.event_count;
  }
  return change;
}

std::vector<std::string> StreamLive::notes(std::uint32_t device) const {
  std::vector<std::string> out;
  if (unknown_frees_ > 0)
    out.push_back(fmt::format(
        "device {}: {} of an address that the log never allocated; the log begins late, or events were lost", device,
        format_count(unknown_frees_, "free")));
  if (replaced_ > 0)
    out.push_back(fmt::format("device {}: {} at an address that was still live; the free between them is missing",
                              device, format_count(replaced_, "allocation")));
  return out;
}

void SitesSince::add(const Change& change) {
  const std::size_t place = index_of(change.stack);
  if (place >= changed_.size()) changed_.resize(std::max(place + 1, changed_.size() * 2));
  Cell& its = changed_[place];
  if (!its.is_touched) touched_.push_back(place);
  its.is_touched = true;
  its.bytes += change.live_bytes;
  its.blocks += change.live_blocks;
}

void SitesSince::mark() {
  for (const std::size_t place : touched_) changed_[place] = {};
  touched_.clear();
}

Profile SitesSince::profile(const std::vector<StackBytes>& now) const {
  Profile out = now;
  for (const std::size_t place : touched_) {
    out[place].bytes -= changed_[place].bytes;
    out[place].blocks -= changed_[place].blocks;
  }
  return sorted(std::move(out));
}

StreamReplay::StreamReplay(std::uint32_t device, const TimelineOptions& options) : device_(device), options_(options) {
  options_.points = (std::max(options_.points, kLeastPoints) + 1) / 2 * 2;  // must be even: they are joined in pairs
}

Status StreamReplay::take(const AllocEvent& event) {
  const auto freed = live_.take(event);
  if (!freed) return fail(freed.error());
  if (event.time_us != kNoTime) now_.time_us = event.time_us;
  if (live_.counts().event_count == 1) begin_.time_us = now_.time_us;
  now_.event = live_.counts().event_count - 1;
  const auto apply = [&](const Change& change) {
    if (change.live_bytes == 0 && change.live_blocks == 0) return;
    StackBytes& its = at(by_stack_, change.stack);
    its.bytes += change.live_bytes;
    its.blocks += change.live_blocks;
    since_high_.add(change);
    since_low_.add(change);
    now_.live_bytes += change.live_bytes;
  };
  apply(*freed);
  if (event.action == Action::alloc) {
    Change made;
    made.stack = event.stack;
    made.live_bytes = static_cast<std::int64_t>(event.size_bytes);
    made.live_blocks = 1;
    apply(made);
  }
  now_.reserved_bytes = now_.live_bytes;  // there is no cache between the program and the driver
  if (open_events_ == 0 || now_.live_bytes > high_.live_bytes) {
    high_ = now_;
    since_high_.mark();
  }
  if (open_events_ == 0 || now_.live_bytes < low_.live_bytes) {
    low_ = now_;
    since_low_.mark();
  }
  if (++open_events_ < stretch_events_) return {};
  stretches_.push_back(open_stretch());
  open_events_ = 0;
  if (stretches_.size() == options_.points) join_stretches();
  return {};
}

StreamReplay::Stretch StreamReplay::open_stretch() const {
  return {high_, low_, since_high_.profile(by_stack_), since_low_.profile(by_stack_)};
}

void StreamReplay::join_stretches() {
  std::vector<Stretch> joined;
  for (std::size_t i = 0; i + 1 < stretches_.size(); i += 2) {
    Stretch& a = stretches_[i];
    Stretch& b = stretches_[i + 1];
    if (b.high.live_bytes > a.high.live_bytes) {
      a.high = b.high;
      a.at_high = std::move(b.at_high);
    }
    if (b.low.live_bytes < a.low.live_bytes) {
      a.low = b.low;
      a.at_low = std::move(b.at_low);
    }
    joined.push_back(std::move(a));
  }
  stretches_ = std::move(joined);
  stretch_events_ *= 2;
}

std::vector<StreamReplay::Stretch> StreamReplay::all_stretches() const {
  std::vector<Stretch> all = stretches_;
  if (open_events_ > 0) all.push_back(open_stretch());
  return all;
}

Profile StreamReplay::sites() const {
  return sorted(by_stack_);
}

Timeline StreamReplay::timeline(const Symbols& symbols) const {
  Timeline out;
  out.device = device_;
  out.event_count = live_.counts().event_count;
  out.begin = begin_;
  out.end = now_;
  const std::vector<Stretch> all = all_stretches();
  std::unordered_map<std::uint32_t, std::int64_t> most;
  for (const Stretch& stretch : all) {
    out.points.push_back(stretch.high);
    for (const StackBytes& held : stretch.at_high) {
      std::int64_t& bytes = most[index_of(held.stack)];
      bytes = std::max(bytes, held.bytes);
    }
  }
  std::vector<std::pair<std::int64_t, std::uint32_t>> ranked;
  for (const auto& [stack, bytes] : most) ranked.emplace_back(-bytes, stack);
  std::sort(ranked.begin(), ranked.end());
  for (std::size_t i = 0; i < ranked.size() && i < options_.sites; ++i) out.sites.push_back(StackId{ranked[i].second});
  StackCategories stacks(symbols);
  for (const Stretch& stretch : all) {
    out.categories.push_back(categorize(stretch.at_high, {}, stacks));
    std::vector<std::int64_t> row(out.sites.size());
    for (const StackBytes& held : stretch.at_high)
      if (const auto known = std::find(out.sites.begin(), out.sites.end(), held.stack); known != out.sites.end())
        row[static_cast<std::size_t>(known - out.sites.begin())] = held.bytes;
    out.site_bytes.push_back(std::move(row));
  }
  // A peak is higher than its neighbouring stretches.
  std::vector<const Stretch*> peaks;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t here = all[i].high.live_bytes;
    if ((i == 0 || all[i - 1].high.live_bytes < here) && (i + 1 == all.size() || all[i + 1].high.live_bytes <= here))
      peaks.push_back(&all[i]);
  }
  std::stable_sort(peaks.begin(), peaks.end(),
                   [](const Stretch* a, const Stretch* b) { return a->high.live_bytes > b->high.live_bytes; });
  for (std::size_t i = 0; i < peaks.size() && i < options_.peaks; ++i)
    out.peaks.push_back({peaks[i]->high, peaks[i]->at_high, {}});
  return out;
}

std::vector<const StreamReplay::Stretch*> StreamReplay::quiet(const std::vector<Stretch>& all) const {
  std::vector<const Stretch*> out;
  for (std::size_t part = 1; part < kQuietParts; ++part) {
    const std::size_t from = all.size() * part / kQuietParts;
    const std::size_t to = all.size() * (part + 1) / kQuietParts;
    if (from == to) continue;
    out.push_back(&*std::min_element(
        all.begin() + static_cast<std::ptrdiff_t>(from), all.begin() + static_cast<std::ptrdiff_t>(to),
        [](const Stretch& a, const Stretch& b) { return a.low.live_bytes < b.low.live_bytes; }));
  }
  return out;
}

std::vector<Moment> StreamReplay::quiet_moments() const {
  const std::vector<Stretch> all = all_stretches();
  std::vector<Moment> out;
  for (const Stretch* stretch : quiet(all)) out.push_back(stretch->low);
  return out;
}

SnapshotGrowth StreamReplay::growth(std::uint64_t least_bytes) const {
  const std::vector<Stretch> all = all_stretches();
  const std::vector<const Stretch*> moments = quiet(all);
  if (moments.size() < 2) return {};
  std::vector<Usage> usage;
  std::map<std::uint32_t, SiteGrowth> by_stack;
  for (std::size_t n = 0; n < moments.size(); ++n) {
    Usage u;
    u.reserved_bytes = u.allocated_bytes = u.requested_bytes = static_cast<std::uint64_t>(moments[n]->low.live_bytes);
    for (const StackBytes& held : moments[n]->at_low) {
      SiteGrowth& its = by_stack[index_of(held.stack)];
      its.stack = held.stack;
      its.bytes.resize(moments.size());
      its.blocks.resize(moments.size());
      its.bytes[n] = held.bytes;
      its.blocks[n] = held.blocks;
      u.live_block_count += static_cast<std::uint64_t>(held.blocks);
    }
    u.segment_count = u.live_block_count;
    usage.push_back(u);
  }
  std::vector<SiteGrowth> sites;
  for (auto& [stack, its] : by_stack) {
    its.new_bytes = std::max<std::int64_t>(its.growth_bytes(), 0);  // moments do not show which blocks are new
    sites.push_back(std::move(its));
  }
  return growth_between(std::move(sites), std::move(usage), {}, least_bytes);
}

Status StreamSnapshot::take(std::uint32_t device, std::int64_t stream, const AllocEvent& event) {
  const auto [it, is_new] = devices_.try_emplace(device);
  if (Status few = is_new ? refuse_devices(devices_.size()) : Status{}; !few) return few;
  Device& its = it->second;
  const std::uint64_t unknown = its.live.unknown_frees();
  const auto change = its.live.take(event);
  if (!change) return fail(change.error());
  if (!keep_events_ || its.live.unknown_frees() != unknown) return {};
  AllocEvent kept = event;
  kept.origin = origins_.intern({.stream = stream}) & kOriginMask;
  if (kept.action != Action::alloc) {
    kept.size_bytes = static_cast<std::uint64_t>(-change->live_bytes);
    kept.stack = change->stack;
  }
  its.events.push_back(kept);
  return {};
}

Snapshot StreamSnapshot::finish() {
  Snapshot out;
  out.is_event_stream = true;
  out.origins = std::move(origins_);
  for (auto& [device, its] : devices_) {
    std::vector<LiveSet::Held> live;
    its.live.blocks().for_each([&live](const LiveSet::Held& held) { live.push_back(held); });
    std::sort(live.begin(), live.end(),
              [](const LiveSet::Held& a, const LiveSet::Held& b) { return a.address < b.address; });
    for (const LiveSet::Held& held : live) {
      Segment segment;
      segment.device = device;
      segment.address = held.address;
      segment.size_bytes = held.bytes;
      segment.stack = held.stack;
      segment.first_block = out.blocks.size();
      segment.block_count = 1;
      out.segments.push_back(segment);
      out.blocks.push_back({held.address, held.bytes, held.bytes, held.stack, BlockState::active});
    }
    DeviceTrace trace;
    const DeviceTrace& counts = its.live.counts();
    trace.device = device;
    trace.counts = counts.counts;
    trace.event_count = counts.event_count;
    trace.first_time_us = counts.first_time_us;
    trace.last_time_us = counts.last_time_us;
    trace.net_bytes = counts.net_bytes;
    trace.peak_net_bytes = counts.peak_net_bytes;
    trace.peak_event = counts.peak_event;
    trace.events = std::move(its.events);
    out.traces.push_back(std::move(trace));
    for (std::string& note : its.live.notes(device)) out.notes.push_back(std::move(note));
  }
  return out;
}

}  // namespace vramtrack::trace

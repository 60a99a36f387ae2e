#include "trace/allocator_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/format.hpp"
#include "core/printable.hpp"

namespace vramtrack::trace {
namespace {

/// Device addresses have 48 bits at most; the bits above them distinguish the allocators of a file.
constexpr int kAddressBits = 48;
constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << kAddressBits) - 1;
/// Memory that was live all along has no event, and so no address.
constexpr std::uint64_t kBeforeAddress = std::uint64_t{1} << 63;
/// If there would be more blocks than this, each row becomes one block.
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 20;
constexpr std::uint64_t kBlockGap = 512;

/// Sorted with the host first, then by device.
using Place = std::pair<bool, std::uint32_t>;

/// The place of each allocator.
std::vector<Place> places_of(const std::vector<std::string>& names, std::vector<std::string>& notes) {
  std::vector<Place> out;
  for (const std::string& name : names) {
    const AllocatorPlace place = allocator_place(name);
    out.emplace_back(place.is_host, place.device);
  }
  const bool is_host_alone =
      !out.empty() && std::all_of(out.begin(), out.end(), [](const Place& place) { return place.first; });
  if (!is_host_alone) return out;
  for (Place& place : out) place = {false, 0};
  notes.push_back(fmt::format(
      "no memory of a device was recorded: what it shows as device 0 is memory of the host ({})", names.front()));
  return out;
}

/// The live memory, as segments of one block each.
class LiveBlocks {
 public:
  explicit LiveBlocks(Snapshot& out) : out_(out) {}
  void add(const Place& place, std::uint64_t address, std::uint64_t size_bytes, StackId stack, StringId label) {
    Segment segment;
    segment.device = place.second;
    segment.address = address;
    segment.size_bytes = size_bytes;
    segment.stack = stack;
    segment.first_block = out_.blocks.size();
    segment.block_count = 1;
    (place.first ? out_.host_segments : out_.segments).push_back(segment);
    Block block{address, size_bytes, size_bytes, stack, BlockState::active};
    if (label != kNoText) block.origin = out_.origins.intern({.metadata = label}) & kOriginMask;
    out_.blocks.push_back(block);
  }

 private:
  Snapshot& out_;
};

class Replayed {
 public:
  Replayed(AllocatorEvents events, Symbols& symbols, bool keep_events)
      : in_(std::move(events)), keep_events_(keep_events) {
    // The same name as a Replay gives to memory that it did not see allocated.
    const FrameId frame = symbols.intern(Frame{symbols.intern("(allocated before the trace)"), kNoText, 0});
    before_trace_ = symbols.intern({&frame, 1});
  }

  Result<Snapshot> run() {
    out_.is_event_stream = true;
    places_ = places_of(in_.names, out_.notes);
    accounts_.resize(in_.names.size());
    std::stable_sort(in_.events.begin(), in_.events.end(), [](const AllocatorEvent& a, const AllocatorEvent& b) {
      return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.time_ps < b.time_ps;
    });
    for (const AllocatorEvent& event : in_.events)
      if (Status taken = take(event); !taken) return fail(taken.error());
    put_blocks();
    for (auto& [place, trace] : traces_) (place.first ? out_.host_traces : out_.traces).push_back(std::move(trace));
    for (std::size_t i = 0; i < accounts_.size(); ++i) note(in_.names[i], accounts_[i], in_.lifetime_peaks[i]);
    return std::move(out_);
  }

 private:
  struct Live {
    std::uint64_t size_bytes = 0;
    StackId stack = kNoStack;
    StringId label = kNoText;
    std::uint32_t allocator = 0;
  };
  struct Account {
    std::int64_t net_bytes = 0;            ///< the sum of the events
    std::optional<std::int64_t> at_begin;  ///< before the first event, by the allocator's count
    std::uint64_t freed_of_before_bytes = 0;
    std::uint64_t last_in_use_bytes = 0;
    std::uint64_t most_in_use_bytes = 0;
    std::uint64_t unknown_frees = 0;
    std::uint64_t replaced = 0;
  };

  Status take(const AllocatorEvent& event) {
    moved_bytes_ += event.size_bytes;
    if (event.size_bytes >> 56 != 0 || moved_bytes_ >> 61 != 0)
      return fail(
          fmt::format("has an event of {} bytes: the sizes add up to more than any device can move", event.size_bytes));
    Account& account = accounts_[event.allocator];
    const std::uint64_t address = (event.address & kAddressMask) | (std::uint64_t{event.allocator} << kAddressBits);
    const bool is_new = seen_.insert(address).second;
    const auto known = live_.find(address);
    if (event.is_alloc) {
      if (known != live_.end()) {
        // Its free was not recorded.
        ++account.replaced;
        count(account, event, -static_cast<std::int64_t>(known->second.size_bytes));
      }
      const Live block{event.size_bytes, event.stack, event.label, event.allocator};
      live_[address] = block;
      count(account, event, static_cast<std::int64_t>(event.size_bytes));
      add(event, Action::alloc, address, block);
    } else if (known != live_.end()) {
      count(account, event, -static_cast<std::int64_t>(known->second.size_bytes));
      add(event, Action::free_completed, address, known->second);
      live_.erase(known);
    } else if (is_new) {
      // Live before the first event. Requires both frees: one alone may be of a block that waited for a stream.
      account.freed_of_before_bytes += event.size_bytes;
      count(account, event, -static_cast<std::int64_t>(event.size_bytes));
      const Live block{event.size_bytes, kNoStack, kNoText, event.allocator};
      add(event, Action::free_requested, address, block);
      add(event, Action::free_completed, address, block);
    } else {
      ++account.unknown_frees;  // frees a block whose allocation was not recorded
    }
    note_in_use(account, event);
    return {};
  }

  void count(Account& account, const AllocatorEvent& event, std::int64_t change) {
    account.net_bytes += change;
    DeviceTrace& trace = trace_of(event.allocator);
    trace.net_bytes += change;
    if (trace.net_bytes <= trace.peak_net_bytes) return;
    trace.peak_net_bytes = trace.net_bytes;
    trace.peak_event = trace.event_count + 1;
  }

  static void note_in_use(Account& account, const AllocatorEvent& event) {
    if (!event.in_use_bytes || *event.in_use_bytes >> 56 != 0) return;
    account.last_in_use_bytes = *event.in_use_bytes;
    account.most_in_use_bytes = std::max(account.most_in_use_bytes, *event.in_use_bytes);
    if (!account.at_begin) account.at_begin = static_cast<std::int64_t>(*event.in_use_bytes) - account.net_bytes;
  }

  DeviceTrace& trace_of(std::uint32_t allocator) {
    DeviceTrace& trace = traces_[places_[allocator]];
    trace.device = places_[allocator].second;
    return trace;
  }

  void add(const AllocatorEvent& event, Action action, std::uint64_t address, const Live& block) {
    DeviceTrace& trace = trace_of(event.allocator);
    ++trace.counts[static_cast<std::size_t>(action)];
    ++trace.event_count;
    AllocEvent kept;
    kept.address = address;
    kept.size_bytes = block.size_bytes;
    kept.time_us = event.time_ns / 1000;
    kept.stack = block.stack;
    kept.action = action;
    if (trace.first_time_us == kNoTime) trace.first_time_us = kept.time_us;
    trace.last_time_us = kept.time_us;
    if (!keep_events_) return;
    if (block.label != kNoText) kept.origin = out_.origins.intern({.metadata = block.label}) & kOriginMask;
    trace.events.push_back(kept);
  }

  void put_blocks() {
    std::vector<std::pair<std::uint64_t, Live>> blocks(live_.begin(), live_.end());
    for (std::uint32_t i = 0; i < accounts_.size(); ++i) {
      const std::int64_t rest =
          accounts_[i].at_begin.value_or(0) - static_cast<std::int64_t>(accounts_[i].freed_of_before_bytes);
      if (rest <= 0 || (moved_bytes_ + static_cast<std::uint64_t>(rest)) >> 61 != 0) continue;
      moved_bytes_ += static_cast<std::uint64_t>(rest);
      blocks.push_back({kBeforeAddress | i, {static_cast<std::uint64_t>(rest), before_trace_, kNoText, i}});
    }
    std::sort(blocks.begin(), blocks.end(), [&](const auto& a, const auto& b) {
      const Place& of_a = places_[a.second.allocator];
      const Place& of_b = places_[b.second.allocator];
      return of_a != of_b ? of_a < of_b : a.first < b.first;
    });
    LiveBlocks live(out_);
    for (const auto& [address, block] : blocks)
      live.add(places_[block.allocator], address, block.size_bytes, block.stack, block.label);
  }

  void note(const std::string& name, const Account& account, std::uint64_t lifetime_peak_bytes) {
    const auto add = [&](const std::string& words) { out_.notes.push_back(fmt::format("{}: {}", name, words)); };
    if (account.unknown_frees > 0)
      add(fmt::format("{} of a block whose allocation was not recorded", format_count(account.unknown_frees, "free")));
    if (account.replaced > 0)
      add(fmt::format("{} where a block was still live: its free was not recorded",
                      format_count(account.replaced, "allocation")));
    if (account.at_begin)
      if (const std::int64_t by_events = *account.at_begin + account.net_bytes;
          by_events != static_cast<std::int64_t>(account.last_in_use_bytes))
        add(fmt::format("it holds {} at the end by its own count and {} by its events: some were not recorded",
                        format_size(account.last_in_use_bytes), format_size(by_events)));
    if (lifetime_peak_bytes > account.most_in_use_bytes && account.most_in_use_bytes > 0)
      add(fmt::format("it once held {}, before the profile, in which it holds {} at most",
                      format_size(lifetime_peak_bytes), format_size(account.most_in_use_bytes)));
  }

  AllocatorEvents in_;
  bool keep_events_;
  StackId before_trace_ = kNoStack;
  Snapshot out_;
  std::vector<Place> places_;      ///< one per allocator
  std::vector<Account> accounts_;  ///< one per allocator
  std::map<Place, DeviceTrace> traces_;
  std::unordered_map<std::uint64_t, Live> live_;
  std::unordered_set<std::uint64_t> seen_;
  std::uint64_t moved_bytes_ = 0;
};

}  // namespace

AllocatorPlace allocator_place(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  AllocatorPlace out;
  out.is_host = lower.find("host") != std::string::npos || lower.find("cpu") != std::string::npos;
  if (out.is_host) return out;
  constexpr std::uint32_t kMost = 100'000;
  for (std::size_t at = lower.find_first_of("0123456789");
       at < lower.size() && lower[at] >= '0' && lower[at] <= '9' && out.device < kMost; ++at)
    out.device = out.device * 10 + static_cast<std::uint32_t>(lower[at] - '0');
  return out;
}

StackId allocation_stack(Symbols& symbols, std::string_view op, std::string_view region, std::string_view allocator) {
  std::vector<FrameId> frames;
  for (const std::string_view name : {op.empty() ? std::string_view("(no operation recorded)") : op, region, allocator})
    if (!name.empty()) frames.push_back(symbols.intern(Frame{symbols.intern(name), kNoText, 0}));
  return symbols.intern(frames);
}

StringId allocation_label(Symbols& symbols, std::string_view data_type, std::string_view shape) {
  if (shape == "unknown") shape = {};
  if (data_type == "INVALID") data_type = {};
  return symbols.intern(
      fmt::format("{}{}{}", data_type, data_type.empty() || shape.starts_with('[') ? "" : " ", shape));
}

Result<Snapshot> snapshot_of_events(AllocatorEvents events, Symbols& symbols, bool keep_events) {
  return Replayed(std::move(events), symbols, keep_events).run();
}

Result<Snapshot> snapshot_of_blocks(const std::vector<std::string>& names, const std::vector<HeldBlocks>& held) {
  Snapshot out;
  out.is_event_stream = true;
  out.is_heap_profile = true;
  const std::vector<Place> places = places_of(names, out.notes);
  std::uint64_t count = 0;
  std::uint64_t all_bytes = 0;
  for (const HeldBlocks& row : held) {
    count = std::min(count + std::min(row.count, 2 * kMostBlocks), 2 * kMostBlocks);
    if (row.size_bytes >> 56 != 0 || row.count >> 56 != 0 ||
        row.size_bytes > (std::uint64_t{1} << 56) / std::max<std::uint64_t>(row.count, 1))
      return fail(
          fmt::format("has an allocation of {} times {} bytes, more than any device has", row.count, row.size_bytes));
    all_bytes += row.size_bytes * row.count;
    if (all_bytes >> 61 != 0) return fail("its allocations add up to more than any device has");
  }
  const bool is_counted = count <= kMostBlocks;
  if (!is_counted)
    out.notes.push_back(fmt::format("it has more than {} blocks: each of its {} is shown as one",
                                    format_number(kMostBlocks), format_count(held.size(), "row")));
  std::vector<const HeldBlocks*> rows;
  for (const HeldBlocks& row : held)
    if (row.size_bytes > 0 && row.count > 0) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [&](const HeldBlocks* a, const HeldBlocks* b) {
    return places[a->allocator] < places[b->allocator];
  });
  LiveBlocks live(out);
  std::uint64_t address = kBlockGap;
  for (const HeldBlocks* const row : rows) {
    const std::uint64_t size_bytes = is_counted ? row->size_bytes : row->size_bytes * row->count;
    for (std::uint64_t i = 0; i < (is_counted ? row->count : 1); ++i) {
      live.add(places[row->allocator], address, size_bytes, row->stack, row->label);
      address += size_bytes + kBlockGap;
    }
  }
  return out;
}

}  // namespace vramtrack::trace

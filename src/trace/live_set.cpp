#include "trace/live_set.hpp"

#include <algorithm>

namespace vramtrack::trace {

Change Replay::apply(const AllocEvent& event, LiveSet& live) const {
  Change change;
  const auto size = static_cast<std::int64_t>(event.size_bytes);
  switch (event.action) {
    case Action::alloc:
      // A block that is already there was freed without an event, as happens in filtered traces.
      if (const LiveSet::Held* const held = live.find(event.address)) {
        (held->is_pending ? change.pending_bytes : change.live_bytes) -= static_cast<std::int64_t>(held->bytes);
        if (!held->is_pending) --change.live_blocks;
      }
      live.put(event.address, event.size_bytes, event.stack, false);
      change.stack = event.stack;
      change.live_bytes += size;
      ++change.live_blocks;
      return change;
    case Action::free_requested: {
      LiveSet::Held* const held = live.find(event.address);
      change.stack = held != nullptr ? held->stack : before_;
      if (held == nullptr || held->is_pending) return change;
      held->is_pending = true;
      change.live_bytes = -static_cast<std::int64_t>(held->bytes);
      change.live_blocks = -1;
      change.pending_bytes = static_cast<std::int64_t>(held->bytes);
      return change;
    }
    case Action::free_completed: {
      const LiveSet::Held* const held = live.find(event.address);
      change.stack = held != nullptr ? held->stack : before_;
      if (held == nullptr) return change;
      (held->is_pending ? change.pending_bytes : change.live_bytes) = -static_cast<std::int64_t>(held->bytes);
      change.live_blocks = held->is_pending ? 0 : -1;
      live.erase(event.address);
      return change;
    }
    case Action::segment_alloc:
    case Action::segment_map:
      change.stack = event.stack;
      change.reserved_bytes = size;
      return change;
    case Action::segment_free:
    case Action::segment_unmap:
      change.stack = event.stack;
      change.reserved_bytes = -size;
      return change;
    default:
      change.stack = event.stack;
      return change;
  }
}

Replay::Replay(const Snapshot& snapshot, std::uint32_t device, Symbols& symbols) {
  trace_ = snapshot.trace_of(device);
  is_event_stream_ = snapshot.is_event_stream;
  const FrameId frame = symbols.intern(Frame{symbols.intern("(allocated before the trace)"), symbols.intern(""), 0});
  before_ = symbols.intern({&frame, 1});

  // First the trace itself: the blocks open at its end, and those freed without an allocation.
  LiveSet open;
  LiveSet freed_first;
  std::int64_t reserved = 0;
  const std::size_t count = event_count();
  for (std::size_t i = 0; i < count; ++i) {
    const AllocEvent& event = trace_->events[i];
    switch (event.action) {
      case Action::alloc:
        open.put(event.address, event.size_bytes, event.stack, false);
        break;
      case Action::free_requested:
        if (LiveSet::Held* const held = open.find(event.address)) {
          held->is_pending = true;
        } else {
          freed_first.put(event.address, event.size_bytes, before_, false);
          open.put(event.address, event.size_bytes, before_, true);
        }
        break;
      case Action::free_completed:
        if (open.find(event.address) != nullptr)
          open.erase(event.address);
        else if (freed_first.find(event.address) == nullptr)
          freed_first.put(event.address, event.size_bytes, before_, true);
        break;
      case Action::segment_alloc:
      case Action::segment_map:
        reserved += static_cast<std::int64_t>(event.size_bytes);
        break;
      case Action::segment_free:
      case Action::segment_unmap:
        reserved -= static_cast<std::int64_t>(event.size_bytes);
        break;
      default:
        break;
    }
  }
  initial_ = std::move(freed_first);
  std::int64_t reserved_at_end = 0;
  for (const Segment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    reserved_at_end += static_cast<std::int64_t>(segment.size_bytes);
    for (std::size_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
      const Block& block = snapshot.blocks[i];
      if (block.state == BlockState::inactive) continue;
      if (open.find(block.address) != nullptr) {
        open.erase(block.address);
        continue;
      }
      // The block was live all along. A block freed earlier in the trace was another one at the same address.
      if (initial_.find(block.address) == nullptr)
        initial_.put(block.address, block.requested_bytes, block.stack == kNoStack && count > 0 ? before_ : block.stack,
                     block.state == BlockState::pending_free);
      else
        ++mismatches_;
    }
  }
  mismatches_ += open.size();
  ProfileBuilder builder;
  initial_.for_each([&](const LiveSet::Held& held) {
    (held.is_pending ? begin_.pending_bytes : begin_.live_bytes) += static_cast<std::int64_t>(held.bytes);
    if (!held.is_pending) builder.add(held.stack, static_cast<std::int64_t>(held.bytes), 1);
  });
  initial_profile_ = builder.profile();
  begin_.reserved_bytes = is_event_stream_ ? begin_.live_bytes + begin_.pending_bytes : reserved_at_end - reserved;
  if (trace_ != nullptr) begin_.time_us = trace_->first_time_us;
}

std::vector<Profile> profiles_at(const Replay& replay, std::span<const std::uint64_t> events) {
  std::vector<Profile> out;
  std::vector<StackBytes> by_stack;
  const auto at = [&by_stack](StackId stack) -> StackBytes& {
    if (index_of(stack) >= by_stack.size())
      by_stack.resize(std::max<std::size_t>(index_of(stack) + 1, by_stack.size() * 2));
    by_stack[index_of(stack)].stack = stack;
    return by_stack[index_of(stack)];
  };
  for (const StackBytes& held : replay.live_at_begin()) at(held.stack) = held;
  const auto take = [&] {
    Profile profile;
    for (const StackBytes& held : by_stack)
      if (held.bytes != 0 || held.blocks != 0) profile.push_back(held);
    std::sort(profile.begin(), profile.end(), [](const StackBytes& a, const StackBytes& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
    });
    return profile;
  };
  std::size_t next = 0;
  replay.run([&](const AllocEvent&, const Change& change, const Moment& now) {
    if (change.live_bytes != 0 || change.live_blocks != 0) {
      StackBytes& held = at(change.stack);
      held.bytes += change.live_bytes;
      held.blocks += change.live_blocks;
    }
    for (; next < events.size() && events[next] <= now.event; ++next) out.push_back(take());
  });
  while (out.size() < events.size()) out.push_back(take());
  return out;
}

}  // namespace vramtrack::trace

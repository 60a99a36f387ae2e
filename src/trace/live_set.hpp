// LiveSet and Replay: what was live at each event of a device's trace. The blocks give the final state. The trace is a
// ring that may begin in the middle; what was live before its first event follows from both.
//
//        before the trace        trace (ring)              snapshot
//     ---------------------|--------------------------|  blocks
//      freed in it, never allocated in it -> was live before, allocated by an unknown site
//      in the blocks, never allocated in it -> was live before, the block may know its stack
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/address_table.hpp"
#include "trace/profile.hpp"
#include "trace/snapshot.hpp"

namespace vramtrack::trace {

/// Live blocks by address; 24 to 48 bytes per block.
class LiveSet {
 public:
  struct Held {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    StackId stack = kNoStack;
    bool is_pending = false;
    bool is_in_use = false;
    [[nodiscard]] bool is_used() const { return is_in_use; }
  };

  /// The block at `address`, or null. Valid until the next put or erase.
  Held* find(std::uint64_t address) { return table_.find(address); }
  /// Replaces any block at `address`.
  void put(std::uint64_t address, std::uint64_t bytes, StackId stack, bool is_pending) {
    const Held held{address, bytes, stack, is_pending, true};
    if (Held* const known = find(address))
      *known = held;
    else
      table_.put(held);
  }
  void erase(std::uint64_t address) {
    if (Held* const known = find(address)) table_.erase(known);
  }
  [[nodiscard]] std::size_t size() const { return table_.size(); }
  template <class Visit>
  void for_each(Visit visit) const {
    table_.for_each(visit);
  }

 private:
  AddressTable<Held> table_;
};

/// The change by one event.
struct Change {
  StackId stack = kNoStack;  ///< the stack that allocated the event's block, even for a free
  std::int64_t live_bytes = 0;
  std::int64_t live_blocks = 0;
  std::int64_t pending_bytes = 0;
  std::int64_t reserved_bytes = 0;
};

/// Totals after an event; requested bytes, except reserved.
struct Moment {
  std::uint64_t event = 0;  ///< index into the trace
  std::int64_t time_us = kNoTime;
  std::int64_t live_bytes = 0;
  std::int64_t pending_bytes = 0;
  std::int64_t reserved_bytes = 0;
};

class Replay {
 public:
  /// Two passes over the events of `device` (none: an empty replay). `symbols` gets one more stack, that of the blocks
  /// "(allocated before the trace)".
  Replay(const Snapshot& snapshot, std::uint32_t device, Symbols& symbols);

  /// The totals before the first event.
  [[nodiscard]] const Moment& begin() const { return begin_; }
  [[nodiscard]] const Profile& live_at_begin() const { return initial_profile_; }
  [[nodiscard]] StackId before_trace() const { return before_; }
  /// The number of blocks that are live at the end of the trace but not in the segments, or vice versa; 0 in a
  /// consistent file.
  [[nodiscard]] std::uint64_t mismatch_count() const { return mismatches_; }
  [[nodiscard]] std::uint64_t event_count() const { return trace_ != nullptr ? trace_->events.size() : 0; }

  /// Calls visit(const AllocEvent&, const Change&, const Moment&) for every event, in order.
  template <class Visit>
  void run(Visit visit) const {
    if (trace_ == nullptr) return;
    LiveSet live = initial_;
    Moment now = begin_;
    for (std::size_t i = 0; i < trace_->events.size(); ++i) {
      const AllocEvent& event = trace_->events[i];
      Change change = apply(event, live);
      if (is_event_stream_) change.reserved_bytes = change.live_bytes + change.pending_bytes;
      now.event = i;
      if (event.time_us != kNoTime) now.time_us = event.time_us;
      now.live_bytes += change.live_bytes;
      now.pending_bytes += change.pending_bytes;
      now.reserved_bytes += change.reserved_bytes;
      visit(event, change, now);
    }
  }

 private:
  Change apply(const AllocEvent& event, LiveSet& live) const;

  const DeviceTrace* trace_ = nullptr;
  StackId before_ = kNoStack;
  LiveSet initial_;
  Profile initial_profile_;
  Moment begin_;
  std::uint64_t mismatches_ = 0;
  bool is_event_stream_ = false;  ///< live memory equals the memory taken from the driver
};

/// The live bytes by stack after each of the events, which must be ascending. Takes one replay.
std::vector<Profile> profiles_at(const Replay& replay, std::span<const std::uint64_t> events);

}  // namespace vramtrack::trace

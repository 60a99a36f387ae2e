// MappedMemory: which pieces of physical memory a followed program has created (cuMemCreate), where each is mapped, and
// when its last handle or mapping goes.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "telemetry/events.h"

namespace vramtrack::telemetry {

/// Memory: about 200 bytes per piece. Not thread-safe. Times are the events' (CLOCK_MONOTONIC): a call that began
/// before a handle or an address was reused refers to its previous owner.
class MappedMemory {
 public:
  /// Where a piece is mapped from now on: an address, or 0 for nowhere. `is_gone`: it has no handle or mapping left.
  struct Change {
    std::uint64_t key = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  ///< the size mapped there
    bool is_gone = false;
  };

  /// Whether this call (probe::Call) allocates memory that has handles.
  static bool is_of(std::uint32_t call);

  /// Adds a new handle (an address). Returns the key of its memory, which no address and no other piece ever has.
  std::uint64_t created(const telemetry_event& event);
  /// TELEMETRY_EVENT_MAPPED, and TELEMETRY_EVENT_FREE of a handle. Returns how pieces change; empty if none does.
  std::vector<Change> changed(const telemetry_event& event);
  /// Whether a handle is known.
  [[nodiscard]] bool has(std::uint64_t handle) const { return handles_.count(handle) > 0; }
  /// Call it when the memory has ended with its device.
  void ended(std::uint64_t key);

 private:
  struct Handle {
    std::uint64_t key = 0, time_ns = 0;
    std::uint32_t owners = 0;
  };
  struct Mapping {
    std::uint64_t key = 0, bytes = 0, time_ns = 0;
  };
  struct Piece {
    std::uint64_t held_at = 0;
    std::uint32_t handles = 0, mappings = 0;
  };
  void map(const telemetry_event& event, std::vector<Change>& changes);
  void unmap(const telemetry_event& event, std::vector<Change>& changes);
  void unmap(std::map<std::uint64_t, Mapping>::iterator mapping, std::vector<Change>& changes);
  void release(std::unordered_map<std::uint64_t, Handle>::iterator handle, std::vector<Change>& changes);

  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, Handle> handles_;
  std::map<std::uint64_t, Mapping> mappings_;        ///< by address
  std::unordered_map<std::uint64_t, Piece> pieces_;  ///< by key
};

}  // namespace vramtrack::telemetry

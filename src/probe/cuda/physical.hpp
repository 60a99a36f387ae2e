// Physical memory of the driver's virtual memory management: it lives until all of its handles are released and nothing
// maps it or binds it to a multicast object. It is recorded at its first mapping, so that a framework's blocks are
// within it, and under a separate key while nothing maps it.
#pragma once

#include <cstdint>

#include "probe/table.hpp"
#include "probe/wire.hpp"

namespace vramtrack::probe::cuda {

/// The effect of an event on the holdings: memory was moved from one key to another, was freed (`to` is 0), or was
/// added (`from` is 0). If both keys are 0, the event does not change the holdings, as when one of several handles is
/// released.
struct Move {
  std::uint64_t from = 0, to = 0;
  std::uint64_t bytes = 0;  ///< size of the added memory
  Call call = Call::none;
  int device = -1;
};

/// Thread-safe; constant initialisation.
class PhysicalMemory {
 public:
  /// Adds a handle for new memory. `bytes` 0: unknown until it is mapped. Returns the key under which it is recorded.
  std::uint64_t create(std::uint64_t handle, std::uint64_t bytes, Call call, int device);
  /// Adds a reference: the driver returned `handle` for the mapping that contains `address`.
  void retain(std::uint64_t handle, std::uint64_t address);
  Move map(std::uint64_t handle, std::uint64_t address, std::uint64_t bytes);
  /// Removes the first mapping in [address, end) and moves `address` after it. False if there is none.
  bool unmap(std::uint64_t& address, std::uint64_t end, Move& move);

  /// Records that `memory`, a handle or a mapped address, is bound to the multicast object `group` at `offset`.
  void bind(std::uint64_t group, std::uint64_t offset, std::uint64_t memory);
  void bind_address(std::uint64_t group, std::uint64_t offset, std::uint64_t address);
  /// Removes the first binding of a device's memory to `group` in [offset, offset + bytes). False if there is none.
  bool unbind(std::uint64_t group, int device, std::uint64_t offset, std::uint64_t bytes, Move& move);
  /// Removes the first binding to a destroyed multicast object. False if there is none. Cheap if nothing is bound.
  bool unbind_from_gone(Move& move);

  struct Released;
  /// Call before the driver's function.
  Released release(std::uint64_t handle);
  /// Call if the driver refused.
  void undo(const Released& released);
  /// Call in a child after a fork.
  void reset();

 private:
  struct Handle {
    std::uint64_t physical = 0;
    std::uint32_t references = 0;
  };
  struct Mapping {
    std::uint64_t physical = 0, bytes = 0;
  };
  struct Physical {
    std::uint64_t bytes = 0, held_at = 0;
    std::uint32_t references = 0, mappings = 0, bindings = 0;
    Call call = Call::none;
    int device = -1;
    [[nodiscard]] bool is_gone() const { return references == 0 && mappings == 0 && bindings == 0; }
  };
  struct Binding {
    std::uint64_t group = 0, physical = 0, offset = 0;
  };
  void bind_physical(std::uint64_t group, std::uint64_t offset, std::uint64_t physical);
  template <class Wanted>
  bool unbind_first(Wanted wanted, Move& move);
  [[nodiscard]] std::uint64_t mapped_at(std::uint64_t address) const;
  [[nodiscard]] std::uint64_t next_mapping(std::uint64_t from, std::uint64_t end) const;
  [[nodiscard]] std::uint64_t mapping_of(std::uint64_t physical) const;

  Spin spin_;  ///< guards all tables
  std::uint64_t last_ = 0;
  Table<Handle> handles_;
  Table<Mapping> mappings_;
  Table<Physical> physical_;
  Table<Binding> bindings_;
  std::size_t bound_ = 0;
};

struct PhysicalMemory::Released {
  std::uint64_t handle = 0;  ///< 0: unknown
  Handle before;
  Physical physical_before;
  Move move;
};

}  // namespace vramtrack::probe::cuda

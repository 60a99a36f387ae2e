// Physical memory of the driver's virtual memory management: it lives until each of its handles is released and
// nothing maps it or binds it to a multicast object. It is held at where it is mapped first, so that the blocks that a
// framework cuts of it lie within, and under a key of its own while nothing maps it.
#pragma once

#include <cstdint>

#include "probe/table.hpp"
#include "probe/wire.hpp"

namespace vramtrack::probe::cuda {

/// What an event means for the ledger: memory moved from one key to another, is gone (to == 0), or came (from == 0).
/// Nothing where both are 0.
struct Move {
  std::uint64_t from = 0, to = 0;
  std::uint64_t bytes = 0;  ///< of what came
  Call call = Call::none;
  int device = -1;
};

/// Thread-safe; constant initialisation.
class PhysicalMemory {
 public:
  /// A handle of new memory. `bytes` 0: not known before it is mapped. The key that it is held under.
  std::uint64_t create(std::uint64_t handle, std::uint64_t bytes, Call call, int device);
  /// One more reference: `handle` is what the driver gave for the mapping that holds `address`.
  void retain(std::uint64_t handle, std::uint64_t address);
  Move map(std::uint64_t handle, std::uint64_t address, std::uint64_t bytes);
  /// Takes the first mapping in [address, end) away and moves `address` behind it. false: there is none.
  bool unmap(std::uint64_t& address, std::uint64_t end, Move& move);

  /// `memory`, a handle, or what is mapped at an address, is bound to the multicast object `group` at `offset`.
  void bind(std::uint64_t group, std::uint64_t offset, std::uint64_t memory);
  void bind_address(std::uint64_t group, std::uint64_t offset, std::uint64_t address);
  /// Ends the first binding of a device's memory to `group` in [offset, offset + bytes). false: there is none.
  bool unbind(std::uint64_t group, int device, std::uint64_t offset, std::uint64_t bytes, Move& move);
  /// Ends the first binding to a multicast object that is gone. false: there is none. Cheap while nothing is bound.
  bool unbind_from_gone(Move& move);

  struct Released;
  /// Before the driver is called.
  Released release(std::uint64_t handle);
  /// The driver refused.
  void undo(const Released& released);
  /// In a child after a fork.
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

  Spin spin_;  ///< over all tables
  std::uint64_t last_ = 0;
  Table<Handle> handles_;
  Table<Mapping> mappings_;
  Table<Physical> physical_;
  Table<Binding> bindings_;
  std::size_t bound_ = 0;
};

struct PhysicalMemory::Released {
  std::uint64_t handle = 0;  ///< 0: not known
  Handle before;
  Physical physical_before;
  Move move;
};

}  // namespace vramtrack::probe::cuda

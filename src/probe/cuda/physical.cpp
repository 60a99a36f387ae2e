#include "probe/cuda/physical.hpp"

namespace vramtrack::probe::cuda {
namespace {

/// No address has this bit: unmapped memory is recorded under its number. The same applies to handles, including 0.
constexpr std::uint64_t kNumber = 1ULL << 63U;

Key at(std::uint64_t key) {
  return {0, key};
}

}  // namespace

std::uint64_t PhysicalMemory::create(std::uint64_t handle, std::uint64_t bytes, Call call, int device) {
  const Locked locked(spin_);
  const std::uint64_t number = ++last_ | kNumber;
  handles_.put(at(handle | kNumber), {number, 1});
  physical_.put(at(number), {bytes, bytes != 0 ? number : 0, 1, 0, 0, call, device});
  return number;
}

void PhysicalMemory::retain(std::uint64_t handle, std::uint64_t address) {
  const Locked locked(spin_);
  Handle known;
  if (!handles_.find(at(handle | kNumber), known)) known.physical = mapped_at(address);
  ++known.references;
  if (physical_.update(at(known.physical), [](Physical& physical) { ++physical.references; }))
    handles_.put(at(handle | kNumber), known);
}

Move PhysicalMemory::map(std::uint64_t handle, std::uint64_t address, std::uint64_t bytes) {
  const Locked locked(spin_);
  Handle known;
  Move move;
  if (!handles_.find(at(handle | kNumber), known)) return move;
  const bool is_known = physical_.update(at(known.physical), [&](Physical& physical) {
    if (physical.mappings++ > 0) return;
    move = {physical.held_at, address, 0, physical.call, physical.device};
    if (physical.bytes == 0) physical.bytes = move.bytes = bytes;
    physical.held_at = address;
  });
  if (is_known) mappings_.put(at(address), {known.physical, bytes});
  return move;
}

/// The address of the first mapping in the range; contiguous mappings are found without a search.
std::uint64_t PhysicalMemory::next_mapping(std::uint64_t from, std::uint64_t end) const {
  if (Mapping there; mappings_.find(at(from), there)) return from;
  std::uint64_t first = end;
  mappings_.each([&](const Key& key, const Mapping&) {
    if (key.handle >= from && key.handle < first) first = key.handle;
  });
  return first;
}

std::uint64_t PhysicalMemory::mapping_of(std::uint64_t physical) const {
  std::uint64_t found = 0;
  mappings_.each([&](const Key& key, const Mapping& mapping) {
    if (mapping.physical == physical) found = key.handle;
  });
  return found;
}

bool PhysicalMemory::unmap(std::uint64_t& address, std::uint64_t end, Move& move) {
  const Locked locked(spin_);
  move = {};
  const std::uint64_t first = address < end ? next_mapping(address, end) : end;
  Mapping mapping;
  if (first >= end || !mappings_.take(at(first), mapping)) return false;
  address = first + mapping.bytes;
  Physical physical;
  if (!physical_.take(at(mapping.physical), physical)) return true;
  --physical.mappings;
  if (physical.is_gone()) {
    move.from = physical.held_at;
    return true;
  }
  if (physical.held_at == first) {
    move.from = first;
    move.to = physical.mappings == 0 ? mapping.physical : mapping_of(mapping.physical);
    physical.held_at = move.to;
  }
  physical_.put(at(mapping.physical), physical);
  return true;
}

std::uint64_t PhysicalMemory::mapped_at(std::uint64_t address) const {
  std::uint64_t found = 0;
  mappings_.each([&](const Key& key, const Mapping& mapping) {
    if (address - key.handle < mapping.bytes) found = mapping.physical;
  });
  return found;
}

void PhysicalMemory::bind_physical(std::uint64_t group, std::uint64_t offset, std::uint64_t physical) {
  Handle known;
  if (!handles_.find(at(group | kNumber), known)) return;
  if (!physical_.update(at(physical), [](Physical& memory) { ++memory.bindings; })) return;
  bindings_.put(at(++last_ | kNumber), {known.physical, physical, offset});
  ++bound_;
}

void PhysicalMemory::bind(std::uint64_t group, std::uint64_t offset, std::uint64_t memory) {
  const Locked locked(spin_);
  if (Handle known; handles_.find(at(memory | kNumber), known)) bind_physical(group, offset, known.physical);
}

void PhysicalMemory::bind_address(std::uint64_t group, std::uint64_t offset, std::uint64_t address) {
  const Locked locked(spin_);
  bind_physical(group, offset, mapped_at(address));
}

template <class Wanted>
bool PhysicalMemory::unbind_first(Wanted wanted, Move& move) {
  move = {};
  std::uint64_t found = 0;
  bindings_.each([&](const Key& key, const Binding& binding) {
    if (found == 0 && wanted(binding)) found = key.handle;
  });
  Binding binding;
  if (!bindings_.take(at(found), binding)) return false;
  --bound_;
  Physical physical;
  if (!physical_.take(at(binding.physical), physical)) return true;
  --physical.bindings;
  if (physical.is_gone())
    move.from = physical.held_at;
  else
    physical_.put(at(binding.physical), physical);
  return true;
}

bool PhysicalMemory::unbind(std::uint64_t group, int device, std::uint64_t offset, std::uint64_t bytes, Move& move) {
  const Locked locked(spin_);
  Handle known;
  if (bound_ == 0 || !handles_.find(at(group | kNumber), known)) return false;
  return unbind_first(
      [&](const Binding& binding) {
        Physical physical;
        return binding.group == known.physical && binding.offset - offset < bytes &&
               physical_.find(at(binding.physical), physical) && physical.device == device;
      },
      move);
}

bool PhysicalMemory::unbind_from_gone(Move& move) {
  const Locked locked(spin_);
  if (bound_ == 0) return false;
  return unbind_first(
      [&](const Binding& binding) {
        Physical group;
        return !physical_.find(at(binding.group), group);
      },
      move);
}

PhysicalMemory::Released PhysicalMemory::release(std::uint64_t handle) {
  const Locked locked(spin_);
  Released released;
  if (!handles_.take(at(handle | kNumber), released.before)) return released;
  Handle known = released.before;
  if (--known.references > 0) handles_.put(at(handle | kNumber), known);
  if (!physical_.take(at(known.physical), released.physical_before)) return released;
  released.handle = handle | kNumber;
  Physical physical = released.physical_before;
  --physical.references;
  if (physical.is_gone())
    released.move.from = physical.held_at;
  else
    physical_.put(at(known.physical), physical);
  return released;
}

void PhysicalMemory::undo(const Released& released) {
  const Locked locked(spin_);
  if (released.handle == 0) return;
  handles_.put(at(released.handle), released.before);
  if (!physical_.update(at(released.before.physical), [](Physical& physical) { ++physical.references; }))
    physical_.put(at(released.before.physical), released.physical_before);
}

void PhysicalMemory::reset() {
  spin_.reset();
  handles_.reset();
  mappings_.reset();
  physical_.reset();
  bindings_.reset();
  bound_ = 0;
}

}  // namespace vramtrack::probe::cuda

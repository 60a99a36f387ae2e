#include "telemetry/mapped_memory.hpp"

#include <algorithm>

#include "probe/wire.hpp"

namespace vramtrack::telemetry {
namespace {

/// No address of a program has this bit set.
constexpr std::uint64_t kKey = 1ULL << 62U;

}  // namespace

bool MappedMemory::is_of(std::uint32_t call) {
  using probe::Call;
  switch (static_cast<Call>(call)) {
    case Call::cu_mem_create:
    case Call::cu_mem_create_host:
    case Call::cu_mem_import:
    case Call::cu_multicast_create:
    case Call::hip_mem_create:
    case Call::hip_mem_import:
      return true;
    default:
      return false;
  }
}

std::uint64_t MappedMemory::created(const telemetry_event& event) {
  const std::uint64_t key = kKey | ++last_;
  pieces_[key].handles = 1;
  handles_[event.address] = {key, event.time_ns, 1};
  return key;
}

std::vector<MappedMemory::Change> MappedMemory::changed(const telemetry_event& event) {
  std::vector<Change> changes;
  if (event.kind == TELEMETRY_EVENT_FREE) {
    const auto handle = handles_.find(event.address);
    if (handle != handles_.end() && handle->second.time_ns <= event.began_ns) release(handle, changes);
  } else if (event.result == TELEMETRY_MAP) {
    map(event, changes);
  } else if (event.result == TELEMETRY_UNMAP) {
    unmap(event, changes);
  } else if (event.result == TELEMETRY_RETAIN_MAPPED) {
    // The driver may return the existing handle or another one.
    auto at = mappings_.upper_bound(event.address);
    if (at == mappings_.begin()) return changes;
    --at;
    if (event.address - at->first >= at->second.bytes) return changes;
    Handle& handle = handles_[event.context];
    if (handle.key != at->second.key) {
      handle = {at->second.key, event.time_ns, 0};
      ++pieces_[handle.key].handles;
    }
    ++handle.owners;
  }
  return changes;
}

void MappedMemory::map(const telemetry_event& event, std::vector<Change>& changes) {
  const auto handle = handles_.find(event.context);
  if (handle == handles_.end()) return;
  // The previous mapping there has been removed, but the call that removed it has not returned yet.
  if (const auto before = mappings_.find(event.address); before != mappings_.end()) unmap(before, changes);
  const std::uint64_t key = handle->second.key;
  mappings_[event.address] = {key, event.bytes, event.time_ns};
  Piece& piece = pieces_[key];
  ++piece.mappings;
  if (piece.held_at != 0) return;
  piece.held_at = event.address;
  changes.push_back({key, event.address, event.bytes});
}

void MappedMemory::unmap(const telemetry_event& event, std::vector<Change>& changes) {
  auto at = mappings_.lower_bound(event.address);
  while (at != mappings_.end() && at->first - event.address < event.bytes) {
    const auto mapping = at++;
    if (mapping->second.time_ns <= event.began_ns) unmap(mapping, changes);
  }
}

void MappedMemory::unmap(std::map<std::uint64_t, Mapping>::iterator mapping, std::vector<Change>& changes) {
  const auto [address, was] = *mapping;
  mappings_.erase(mapping);
  const auto found = pieces_.find(was.key);
  if (found == pieces_.end()) return;
  Piece& piece = found->second;
  if (--piece.mappings == 0 && piece.handles == 0) {
    pieces_.erase(found);
    changes.push_back({was.key, 0, 0, true});
    return;
  }
  if (piece.held_at != address) return;
  const auto next = std::find_if(mappings_.begin(), mappings_.end(),
                                 [key = was.key](const auto& each) { return each.second.key == key; });
  piece.held_at = next == mappings_.end() ? 0 : next->first;
  changes.push_back({was.key, piece.held_at, next == mappings_.end() ? 0 : next->second.bytes});
}

void MappedMemory::release(std::unordered_map<std::uint64_t, Handle>::iterator handle, std::vector<Change>& changes) {
  if (--handle->second.owners > 0) return;
  const std::uint64_t key = handle->second.key;
  handles_.erase(handle);
  const auto piece = pieces_.find(key);
  if (piece == pieces_.end() || --piece->second.handles > 0 || piece->second.mappings > 0) return;
  pieces_.erase(piece);
  changes.push_back({key, 0, 0, true});
}

void MappedMemory::ended(std::uint64_t key) {
  if (pieces_.erase(key) == 0) return;
  std::erase_if(handles_, [&](const auto& each) { return each.second.key == key; });
  std::erase_if(mappings_, [&](const auto& each) { return each.second.key == key; });
}

}  // namespace vramtrack::telemetry

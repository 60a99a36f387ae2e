// HIP's virtual memory management: physical memory has a handle, and lives until the handle is released and nothing
// maps it. While mapped, it is recorded at that address, because a framework's blocks are within it.
#include "probe/hip.hpp"
#include "probe/table.hpp"

namespace vramtrack::probe::hip {
namespace {

struct Physical {
  std::uint32_t references = 1;
  std::uint32_t mappings = 0;
  std::uint64_t address = 0;  ///< its key in the holdings: the handle, or its first mapping
};
Table<Physical> physical;

struct Mapping {
  AllocationHandle handle = nullptr;
  std::uint64_t bytes = 0;
};
Table<Mapping> mappings;

void forget_virtual_memory() {
  physical.reset();
  mappings.reset();
}
VRAMTRACK_ON_FORK(forget_virtual_memory);

std::uint64_t number(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

/// Removes a reference or mapping; the last one frees the memory.
void less(AllocationHandle handle, std::uint64_t unmapped) {
  const Key key = key_of(nullptr, handle);
  std::uint64_t from = 0;
  bool is_gone = false;
  if (!physical.update(key, [&](Physical& known) {
        if (unmapped == 0)
          --known.references;
        else
          --known.mappings;
        is_gone = known.references == 0 && known.mappings == 0;
        if (unmapped != 0 && known.address == unmapped) {
          from = unmapped;
          known.address = number(handle);
        }
      }))
    return;
  if (from != 0 && !is_gone) renamed(Level::driver, from, number(handle));
  Physical known;
  if (is_gone && physical.take(key, known)) gave_back(Level::driver, from != 0 ? from : known.address);
}

void mapped(AllocationHandle handle, void* at, std::uint64_t bytes) {
  bool is_first = false;
  if (!physical.update(key_of(nullptr, handle), [&](Physical& known) {
        is_first = known.mappings++ == 0;
        if (is_first) known.address = number(at);
      }))
    return;
  mappings.put(key_of(nullptr, at), {handle, bytes});
  if (is_first) renamed(Level::driver, number(handle), number(at));
}

void unmapped(void* at, std::uint64_t bytes) {
  const std::uint64_t begin = number(at);
  Mapping mapping;
  // Usually there is one mapping; a range may contain several.
  for (std::uint64_t done = 0; done < bytes; done += mapping.bytes) {
    if (!mappings.take({0, begin + done}, mapping) || mapping.bytes == 0) return;
    less(mapping.handle, begin + done);
  }
}

}  // namespace

// clang-format off: one call, one paragraph

VRAMTRACK_HIP(
    hipMemCreate,
    (AllocationHandle * into, std::size_t bytes, const AllocationProperties* properties, unsigned long long flags),
    const int device = properties != nullptr && properties->location.type == kLocationDevice ? properties->location.id
                                                                                             : -1;
    Hook hook(device < 0 ? Call::hip_host_malloc : Call::hip_mem_create);
    if (hook.passes()) return real(into, bytes, properties, flags);
    if (!hook.may_take(device < 0 ? -1 : device_or_current(device), bytes)) return kOutOfMemory;
    const Error result = real(into, bytes, properties, flags); if (result == kSuccess) {
      physical.put(key_of(nullptr, *into), {1, 0, number(*into)});
      hook.took(number(*into), bytes);
    } else { hook.failed(is_out_of_memory(result)); } return result;)

VRAMTRACK_HIP(hipMemRelease, (AllocationHandle handle), const Error result = real(handle);
              if (result == kSuccess) less(handle, 0); return result;)

VRAMTRACK_HIP(hipMemRetainAllocationHandle, (AllocationHandle * into, void* at), const Error result = real(into, at);
              if (result == kSuccess)
                  physical.update(key_of(nullptr, *into), [](Physical& known) { ++known.references; });
              return result;)

VRAMTRACK_HIP(hipMemMap,
              (void* at, std::size_t bytes, std::size_t offset, AllocationHandle handle, unsigned long long flags),
              const Error result = real(at, bytes, offset, handle, flags);
              if (result == kSuccess) mapped(handle, at, bytes); return result;)

VRAMTRACK_HIP(hipMemUnmap, (void* at, std::size_t bytes), const Error result = real(at, bytes);
              if (result == kSuccess) unmapped(at, bytes); return result;)

// clang-format on

}  // namespace vramtrack::probe::hip

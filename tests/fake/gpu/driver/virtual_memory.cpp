// Virtual memory management, which PyTorch's expandable segments use: memory lives until its handle is released and
// nothing maps it.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <vector>

#include "driver.hpp"

using namespace fake_gpu;

namespace fake_gpu {

struct Physical {
  int device = 0;
  int references = 1;
  std::uint64_t bytes = 0;
  AllocationProperties properties{};
  bool is_foreign = false;  ///< its bytes are another process's, or none
  struct Bound {
    std::uint64_t offset;
    Physical* memory;
  };
  std::vector<Bound> bound;  ///< of a multicast object
};

}  // namespace fake_gpu

namespace {

/// The reserved addresses by their beginning; mappings lie within them.
std::map<std::uint64_t, std::uint64_t>& reservations() {
  static auto& all = *new std::map<std::uint64_t, std::uint64_t>;
  return all;
}

void release(Physical* physical) {
  if (--physical->references > 0) return;
  if (physical->properties.location.type == kOnDevice && !physical->is_foreign)
    give_back(physical->device, physical->bytes, false);
  for (const Physical::Bound& bound : physical->bound) release(bound.memory);
  delete physical;
}

}  // namespace

EXPORT CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const AllocationProperties* properties, int option) {
  *bytes = kPage;
  return kOk;
}
EXPORT CUresult cuMemAddressReserve(CUdeviceptr* out, std::size_t bytes, std::size_t align, CUdeviceptr hint,
                                    unsigned long long flags) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  *out = map_addresses(bytes, align > kPage ? align : kPage, PROT_NONE);
  const CUresult code = *out != 0 ? kOk : kOutOfMemory;
  if (code == kOk) reservations()[*out] = bytes;
  trace("cuMemAddressReserve", -1, *out, bytes, code);
  return code;
}
EXPORT CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const auto reserved = reservations().find(address);
  if (reserved == reservations().end()) return kInvalid;
  unmap_addresses(reserved->first, reserved->second);
  reservations().erase(reserved);
  return kOk;
}
EXPORT CUresult cuMemCreate(Physical** out, std::size_t bytes, const AllocationProperties* properties,
                            unsigned long long flags) {
  if (bytes == 0 || bytes % kPage != 0) return kInvalid;
  const bool on_device = properties->location.type == kOnDevice;
  const int device = on_device ? properties->location.id : 0;
  const std::lock_guard<std::mutex> held(driver_mutex());
  const CUresult code = on_device ? take(device, bytes, false) : CUresult{kOk};
  if (code == kOk) *out = new Physical{device, 1, bytes, *properties, false};
  trace("cuMemCreate", on_device ? device : -1, code == kOk ? reinterpret_cast<std::uint64_t>(*out) : 0, bytes, code);
  return code;
}
EXPORT CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, Physical* physical,
                         unsigned long long flags) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  add_range(address, bytes, Kind::mapped, physical->device).physical = physical;
  ++physical->references;
  trace("cuMemMap", physical->device, address, bytes, kOk);
  return kOk;
}
EXPORT CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const void* access, std::size_t count) {
  return mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) == 0 ? kOk : kInvalid;
}
EXPORT CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  CUresult code = kInvalid;
  for (std::uint64_t at = address; at < address + bytes;) {
    const Range* range = find_range(at);
    if (range == nullptr || range->kind != Kind::mapped) break;
    at = range->end;
    // The addresses stay reserved; their pages go.
    mmap(reinterpret_cast<void*>(range->begin), range->bytes(), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    trace("cuMemUnmap", range->device, range->begin, range->bytes(), kOk);
    release(range->physical);
    erase_range(*range);
    code = kOk;
  }
  return code;
}
EXPORT CUresult cuMemRelease(Physical* physical) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  trace("cuMemRelease", physical->device, reinterpret_cast<std::uint64_t>(physical), physical->bytes, kOk);
  release(physical);
  return kOk;
}
EXPORT CUresult cuMemRetainAllocationHandle(Physical** out, void* address) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const Range* range = find_range(reinterpret_cast<std::uint64_t>(address));
  if (range == nullptr || range->physical == nullptr) return kInvalid;
  *out = range->physical;
  ++range->physical->references;
  return kOk;
}
EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(AllocationProperties* out, Physical* physical) {
  *out = physical->properties;
  return kOk;
}
EXPORT CUresult cuMemExportToShareableHandle(void* out, Physical* physical, int type, unsigned long long flags) {
  constexpr int kFileDescriptor = 1;
  if (type != kFileDescriptor) return kNotSupported;
  *static_cast<int*>(out) = static_cast<int>(syscall(SYS_memfd_create, "fake-gpu", 1U));
  return kOk;
}
EXPORT CUresult cuMemImportFromShareableHandle(Physical** out, void* shared, int type) {
  *out = new Physical{0, 1, 0, {1, type, {kOnDevice, 0}}, true};
  trace("cuMemImportFromShareableHandle", 0, reinterpret_cast<std::uint64_t>(*out), 0, kOk);
  return kOk;
}
/// CUmulticastObjectProp
struct MulticastProperties {
  unsigned devices;
  std::size_t bytes;
};
EXPORT CUresult cuMulticastCreate(Physical** out, const MulticastProperties* properties) {
  *out = new Physical{0, 1, properties->bytes, {}, true};
  trace("cuMulticastCreate", 0, reinterpret_cast<std::uint64_t>(*out), properties->bytes, kOk);
  return kOk;
}
EXPORT CUresult cuMulticastBindMem(Physical* group, std::size_t offset, Physical* memory, std::size_t from,
                                   std::size_t bytes, unsigned long long flags) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  ++memory->references;
  group->bound.push_back({offset, memory});
  return kOk;
}
EXPORT CUresult cuMulticastBindAddr(Physical* group, std::size_t offset, CUdeviceptr address, std::size_t bytes,
                                    unsigned long long flags) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const Range* range = find_range(address);
  if (range == nullptr || range->physical == nullptr) return kInvalid;
  ++range->physical->references;
  group->bound.push_back({offset, range->physical});
  return kOk;
}
EXPORT CUresult cuMulticastUnbind(Physical* group, int device, std::size_t offset, std::size_t bytes) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  std::erase_if(group->bound, [&](const Physical::Bound& bound) {
    const bool is_meant = bound.offset - offset < bytes && bound.memory->device == device;
    if (is_meant) release(bound.memory);
    return is_meant;
  });
  return kOk;
}

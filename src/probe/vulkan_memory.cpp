// Vulkan's memory, and the buffers and images in it. Memory has no device address, so each piece gets a synthetic one,
// from 2^60 on, and resources bound to it are at their offset from there.
#include <atomic>
#include <cstring>

#include "probe/devices.hpp"
#include "probe/recorder.hpp"
#include "probe/spans.hpp"
#include "probe/table.hpp"
#include "probe/vulkan.hpp"

namespace vramtrack::probe::vulkan {
namespace {

constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 60U;
constexpr std::uint64_t kAddressStep = 65536;
std::atomic<std::uint64_t> next_address{kFirstAddress};

struct Memory {
  std::uint64_t base = 0;
  probe::Memory kind = probe::Memory::device;
  Spans bound;
};
Table<Memory> memories;

/// The location of a buffer, or of a plane of an image.
struct Binding {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::uint64_t base = 0;  ///< base of the memory, because its handle may have been reused
  std::uint64_t offset = 0;
};
Table<Binding> bindings;

void forget_memories() {
  memories.reset();
  bindings.reset();
}
VRAMTRACK_ON_FORK(forget_memories);
constexpr std::uint64_t kPlanes = 3;

template <class Handle>
Key key_in(const Device& device, Handle handle, std::uint64_t plane = 0) {
  Key key = key_of(device.handle, handle);
  key.owner += plane;  // device handles are addresses of a larger object
  return key;
}

template <class T>
const T* find_next(const void* chain, VkStructureType type) {
  for (const auto* next = static_cast<const VkBaseInStructure*>(chain); next != nullptr; next = next->pNext)
    if (next->sType == type) return reinterpret_cast<const T*>(next);
  return nullptr;
}

bool is_import(const VkMemoryAllocateInfo& info) {
  const auto* file = find_next<VkImportMemoryFdInfoKHR>(info.pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
  const auto* host =
      find_next<VkImportMemoryHostPointerInfoEXT>(info.pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  return (file != nullptr && file->handleType != 0) || (host != nullptr && host->handleType != 0);
}

Call call_of(const Device& device, const VkMemoryAllocateInfo& info) {
  if (is_import(info)) return Call::vk_import_memory;
  const bool is_on_device =
      info.memoryTypeIndex < device.is_on_device.size() && device.is_on_device[info.memoryTypeIndex];
  return is_on_device ? Call::vk_allocate_memory : Call::vk_allocate_memory_host;
}

VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice handle, const VkMemoryAllocateInfo* info,
                                        const VkAllocationCallbacks* allocator, VkDeviceMemory* into) {
  Device& device = device_of(handle);
  const Call call = call_of(device, *info);
  const probe::Memory kind = info_of(call)->memory;
  Hook hook(call);
  if (hook.passes()) return device.allocate(handle, info, allocator, into);
  record_numbered_device(device.number);
  if (!hook.may_take(kind == probe::Memory::host ? -1 : device.number, info->allocationSize))
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkResult result = device.allocate(handle, info, allocator, into);
  if (result != VK_SUCCESS) {
    hook.failed(result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY);
    return result;
  }
  const std::uint64_t room = (info->allocationSize / kAddressStep + 2) * kAddressStep;
  const std::uint64_t base = next_address.fetch_add(room, std::memory_order_relaxed);
  memories.put(key_in(device, *into), {base, kind, {}});
  hook.took(base, info->allocationSize);
  return result;
}

/// Forgets the memory and everything that is bound to it.
void forget(Memory& memory) {
  for (std::size_t i = 0; i < memory.bound.count(); ++i) gave_back(Level::block, memory.base + memory.bound[i].begin);
  memory.bound.clear();
  gave_back(Level::driver, memory.base);
}

VKAPI_ATTR void VKAPI_CALL free(VkDevice handle, VkDeviceMemory memory, const VkAllocationCallbacks* allocator) {
  Device& device = device_of(handle);
  Memory known;
  if (memory != VK_NULL_HANDLE && memories.take(key_in(device, memory), known)) forget(known);
  device.free(handle, memory, allocator);
}

/// Merged spans are recorded after the table's lock is released.
constexpr std::size_t kMostReplaced = 64;

void bound(const Device& device, Key resource, VkDeviceMemory memory, std::uint64_t offset, std::uint64_t bytes,
           bool is_image) {
  if (memory == VK_NULL_HANDLE || bytes == 0) return;
  std::uint64_t replaced[kMostReplaced];
  std::size_t count = 0;
  Span span;
  std::uint64_t base = 0;
  probe::Memory kind = probe::Memory::mapped;
  memories.update(key_in(device, memory), [&](Memory& known) {
    base = known.base;
    kind = known.kind;
    if (kind == probe::Memory::mapped) return;
    span = known.bound.add(offset, offset + bytes, [&](const Span& old) {
      if (count < kMostReplaced) replaced[count++] = old.begin;
    });
  });
  if (base == 0 || kind == probe::Memory::mapped) return;
  bindings.put(resource, {memory, base, offset});
  for (std::size_t i = 0; i < count; ++i) gave_back(Level::block, base + replaced[i]);
  if (span.end == 0) return;
  const bool is_host = kind == probe::Memory::host;
  const Call call = is_image ? (is_host ? Call::vk_bind_image_host : Call::vk_bind_image)
                             : (is_host ? Call::vk_bind_buffer_host : Call::vk_bind_buffer);
  took_block(call, is_host ? -1 : device.number, base + span.begin, span.end - span.begin);
}

void unbound(const Device& device, Key resource) {
  Binding binding;
  if (!bindings.take(resource, binding)) return;
  Span span;
  memories.update(key_in(device, binding.memory), [&](Memory& known) {
    if (known.base == binding.base) span = known.bound.remove(binding.offset);
  });
  if (span.end != 0) gave_back(Level::block, binding.base + span.begin);
}

void bound_buffer(const Device& device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset) {
  if (!is_recording()) return;
  VkMemoryRequirements needs{};
  device.buffer_needs(device.handle, buffer, &needs);
  bound(device, key_in(device, buffer), memory, offset, needs.size, false);
}

void bound_image(const Device& device, const VkBindImageMemoryInfo& info) {
  if (!is_recording() || info.memory == VK_NULL_HANDLE) return;  // a swapchain's memory belongs to the driver
  const auto* plane = find_next<VkBindImagePlaneMemoryInfo>(info.pNext, VK_STRUCTURE_TYPE_BIND_IMAGE_PLANE_MEMORY_INFO);
  VkMemoryRequirements2 needs{};
  needs.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2;
  std::uint64_t index = 0;
  if (plane == nullptr) {
    device.image_needs(device.handle, info.image, &needs.memoryRequirements);
  } else if (device.image_needs_2 != nullptr) {
    index = plane->planeAspect == VK_IMAGE_ASPECT_PLANE_1_BIT   ? 1
            : plane->planeAspect == VK_IMAGE_ASPECT_PLANE_2_BIT ? 2
                                                                : 0;
    const VkImagePlaneMemoryRequirementsInfo which{VK_STRUCTURE_TYPE_IMAGE_PLANE_MEMORY_REQUIREMENTS_INFO, nullptr,
                                                   plane->planeAspect};
    const VkImageMemoryRequirementsInfo2 question{VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, &which,
                                                  info.image};
    device.image_needs_2(device.handle, &question, &needs);
  }
  bound(device, key_in(device, info.image, index), info.memory, info.memoryOffset, needs.memoryRequirements.size, true);
}

VKAPI_ATTR VkResult VKAPI_CALL bind_buffer(VkDevice handle, VkBuffer buffer, VkDeviceMemory memory,
                                           VkDeviceSize offset) {
  Device& device = device_of(handle);
  const VkResult result = device.bind_buffer(handle, buffer, memory, offset);
  if (result == VK_SUCCESS) bound_buffer(device, buffer, memory, offset);
  return result;
}

VkResult bind_buffers(Device& device, PFN_vkBindBufferMemory2 next, std::uint32_t count,
                      const VkBindBufferMemoryInfo* infos) {
  const VkResult result = next(device.handle, count, infos);
  if (result != VK_SUCCESS) return result;
  for (std::uint32_t i = 0; i < count; ++i)
    bound_buffer(device, infos[i].buffer, infos[i].memory, infos[i].memoryOffset);
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL bind_buffer_2(VkDevice handle, std::uint32_t count,
                                             const VkBindBufferMemoryInfo* infos) {
  Device& device = device_of(handle);
  return bind_buffers(device, device.bind_buffer_2, count, infos);
}
VKAPI_ATTR VkResult VKAPI_CALL bind_buffer_2_khr(VkDevice handle, std::uint32_t count,
                                                 const VkBindBufferMemoryInfo* infos) {
  Device& device = device_of(handle);
  return bind_buffers(device, device.bind_buffer_2_khr, count, infos);
}

VKAPI_ATTR VkResult VKAPI_CALL bind_image(VkDevice handle, VkImage image, VkDeviceMemory memory, VkDeviceSize offset) {
  Device& device = device_of(handle);
  const VkResult result = device.bind_image(handle, image, memory, offset);
  if (result == VK_SUCCESS)
    bound_image(device, {VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO, nullptr, image, memory, offset});
  return result;
}

VkResult bind_images(Device& device, PFN_vkBindImageMemory2 next, std::uint32_t count,
                     const VkBindImageMemoryInfo* infos) {
  const VkResult result = next(device.handle, count, infos);
  if (result != VK_SUCCESS) return result;
  for (std::uint32_t i = 0; i < count; ++i) bound_image(device, infos[i]);
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL bind_image_2(VkDevice handle, std::uint32_t count, const VkBindImageMemoryInfo* infos) {
  Device& device = device_of(handle);
  return bind_images(device, device.bind_image_2, count, infos);
}
VKAPI_ATTR VkResult VKAPI_CALL bind_image_2_khr(VkDevice handle, std::uint32_t count,
                                                const VkBindImageMemoryInfo* infos) {
  Device& device = device_of(handle);
  return bind_images(device, device.bind_image_2_khr, count, infos);
}

VKAPI_ATTR void VKAPI_CALL destroy_buffer(VkDevice handle, VkBuffer buffer, const VkAllocationCallbacks* allocator) {
  Device& device = device_of(handle);
  if (buffer != VK_NULL_HANDLE) unbound(device, key_in(device, buffer));
  device.destroy_buffer(handle, buffer, allocator);
}

VKAPI_ATTR void VKAPI_CALL destroy_image(VkDevice handle, VkImage image, const VkAllocationCallbacks* allocator) {
  Device& device = device_of(handle);
  if (image != VK_NULL_HANDLE)
    for (std::uint64_t plane = 0; plane < kPlanes; ++plane) unbound(device, key_in(device, image, plane));
  device.destroy_image(handle, image, allocator);
}

}  // namespace

void forget_memory_of(const Device& device) {
  const auto owner = reinterpret_cast<std::uint64_t>(device.handle);
  const auto is_of_device = [owner](const Key& key) { return key.owner - owner < kPlanes; };
  Binding binding;
  for (std::size_t at = 0; bindings.take_next(at, is_of_device, binding);) continue;
  Memory memory;
  for (std::size_t at = 0; memories.take_next(at, is_of_device, memory);) forget(memory);
}

PFN_vkVoidFunction memory_function(const char* name) {
  struct Named {
    const char* name;
    PFN_vkVoidFunction function;
  };
  static const Named functions[] = {
      {"vkAllocateMemory", reinterpret_cast<PFN_vkVoidFunction>(&allocate)},
      {"vkFreeMemory", reinterpret_cast<PFN_vkVoidFunction>(&free)},
      {"vkBindBufferMemory", reinterpret_cast<PFN_vkVoidFunction>(&bind_buffer)},
      {"vkBindBufferMemory2", reinterpret_cast<PFN_vkVoidFunction>(&bind_buffer_2)},
      {"vkBindBufferMemory2KHR", reinterpret_cast<PFN_vkVoidFunction>(&bind_buffer_2_khr)},
      {"vkBindImageMemory", reinterpret_cast<PFN_vkVoidFunction>(&bind_image)},
      {"vkBindImageMemory2", reinterpret_cast<PFN_vkVoidFunction>(&bind_image_2)},
      {"vkBindImageMemory2KHR", reinterpret_cast<PFN_vkVoidFunction>(&bind_image_2_khr)},
      {"vkDestroyBuffer", reinterpret_cast<PFN_vkVoidFunction>(&destroy_buffer)},
      {"vkDestroyImage", reinterpret_cast<PFN_vkVoidFunction>(&destroy_image)},
  };
  for (const Named& named : functions)
    if (std::strcmp(named.name, name) == 0) return named.function;
  return nullptr;
}

}  // namespace vramtrack::probe::vulkan

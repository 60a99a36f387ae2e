// The layer itself: its position in the chains of instances and devices. VkLayer_vramtrack_probe.json names the entry.
#include <algorithm>
#include <cstring>

#include "probe/devices.hpp"
#include "probe/recorder.hpp"
#include "probe/self.hpp"
#include "probe/table.hpp"
#include "probe/vulkan.hpp"

namespace vramtrack::probe::vulkan {
namespace {

Table<Instance*> instances;
Table<Device*> devices;

/// A child may continue to use its parent's objects, which only this table can resolve.
void unlock_chains() {
  instances.unlock_after_fork();
  devices.unlock_after_fork();
}
VRAMTRACK_ON_FORK(unlock_chains);

/// Instances with their physical devices, and devices with their queues and command buffers, begin with a pointer that
/// is unique to them: the loader's table.
template <class Dispatchable>
Key table_of(Dispatchable handle) {
  return key_of(nullptr, *reinterpret_cast<void* const*>(handle));
}

template <class Value, class Dispatchable>
Value* find(const Table<Value*>& table, Dispatchable handle) {
  Value* value = nullptr;
  table.find(table_of(handle), value);
  return value;
}

template <class Link, class CreateInfo>
Link* link_of(const CreateInfo& info, VkStructureType type) {
  for (auto* next = static_cast<const Link*>(info.pNext); next != nullptr; next = static_cast<const Link*>(next->pNext))
    if (next->sType == type && next->function == VK_LAYER_LINK_INFO) return const_cast<Link*>(next);
  return nullptr;
}

template <class Function>
void load(const Instance& instance, Function& into, const char* name) {
  into = reinterpret_cast<Function>(instance.get_proc(instance.handle, name));
}
template <class Function>
void load(const Device& device, Function& into, const char* name) {
  into = reinterpret_cast<Function>(device.get_proc(device.handle, name));
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator,
                                               VkInstance* into) {
  auto* link = link_of<VkLayerInstanceCreateInfo>(*info, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get_proc = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get_proc(nullptr, "vkCreateInstance"));
  if (create == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  auto* instance = static_cast<Instance*>(reserve(sizeof(Instance)));
  if (instance == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = create(info, allocator, into);
  if (result != VK_SUCCESS) {
    give_back(instance, sizeof(Instance));
    return result;
  }
  instance->handle = *into;
  instance->get_proc = get_proc;
  load(*instance, instance->destroy, "vkDestroyInstance");
  load(*instance, instance->properties, "vkGetPhysicalDeviceProperties");
  load(*instance, instance->properties_2, "vkGetPhysicalDeviceProperties2");
  if (instance->properties_2 == nullptr) load(*instance, instance->properties_2, "vkGetPhysicalDeviceProperties2KHR");
  load(*instance, instance->memory, "vkGetPhysicalDeviceMemoryProperties");
  load(*instance, instance->memory_2, "vkGetPhysicalDeviceMemoryProperties2");
  if (instance->memory_2 == nullptr) load(*instance, instance->memory_2, "vkGetPhysicalDeviceMemoryProperties2KHR");
  watch_forks();
  instances.put(table_of(*into), instance);
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance handle, const VkAllocationCallbacks* allocator) {
  Instance* instance = nullptr;
  if (handle == VK_NULL_HANDLE || !instances.take(table_of(handle), instance)) return;
  instance->destroy(handle, allocator);
  give_back(instance, sizeof(Instance));
}

/// Fills in the memory types by heap, and the device's number by its UUID.
void describe(const Instance& instance, VkPhysicalDevice physical, Device& device) {
  VkPhysicalDeviceMemoryProperties memory{};
  instance.memory(physical, &memory);
  std::uint64_t total_bytes = 0;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i)
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
      total_bytes = std::max<std::uint64_t>(total_bytes, memory.memoryHeaps[i].size);
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i)
    device.is_on_device[i] =
        (memory.memoryHeaps[memory.memoryTypes[i].heapIndex].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
  VkPhysicalDeviceIDProperties id{};
  id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &id;
  if (instance.properties_2 != nullptr)
    instance.properties_2(physical, &properties);
  else
    instance.properties(physical, &properties.properties);
  constexpr std::uint32_t kNvidia = 0x10DE;
  const UuidText uuid = uuid_text(id.deviceUUID, properties.properties.vendorID == kNvidia);
  device.number = number_of_device(instance.properties_2 != nullptr ? uuid.text : "", properties.properties.deviceName,
                                   total_bytes);
}

void load_all(Device& device) {
  load(device, device.destroy, "vkDestroyDevice");
  load(device, device.allocate, "vkAllocateMemory");
  load(device, device.free, "vkFreeMemory");
  load(device, device.bind_buffer, "vkBindBufferMemory");
  load(device, device.bind_buffer_2, "vkBindBufferMemory2");
  load(device, device.bind_buffer_2_khr, "vkBindBufferMemory2KHR");
  load(device, device.bind_image, "vkBindImageMemory");
  load(device, device.bind_image_2, "vkBindImageMemory2");
  load(device, device.bind_image_2_khr, "vkBindImageMemory2KHR");
  load(device, device.buffer_needs, "vkGetBufferMemoryRequirements");
  load(device, device.image_needs, "vkGetImageMemoryRequirements");
  load(device, device.image_needs_2, "vkGetImageMemoryRequirements2");
  if (device.image_needs_2 == nullptr) load(device, device.image_needs_2, "vkGetImageMemoryRequirements2KHR");
  load(device, device.destroy_buffer, "vkDestroyBuffer");
  load(device, device.destroy_image, "vkDestroyImage");
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator, VkDevice* into) {
  auto* link = link_of<VkLayerDeviceCreateInfo>(*info, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  const Instance* instance = find(instances, physical);
  if (link == nullptr || instance == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetDeviceProcAddr get_proc = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(
      link->u.pLayerInfo->pfnNextGetInstanceProcAddr(instance->handle, "vkCreateDevice"));
  if (create == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  auto* device = static_cast<Device*>(reserve(sizeof(Device)));
  if (device == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = create(physical, info, allocator, into);
  if (result != VK_SUCCESS) {
    give_back(device, sizeof(Device));
    return result;
  }
  device->handle = *into;
  device->get_proc = get_proc;
  load_all(*device);
  describe(*instance, physical, *device);
  devices.put(table_of(*into), device);
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice handle, const VkAllocationCallbacks* allocator) {
  Device* device = nullptr;
  if (handle == VK_NULL_HANDLE || !devices.take(table_of(handle), device)) return;
  forget_memory_of(*device);
  device->destroy(handle, allocator);
  give_back(device, sizeof(Device));
}

/// With a limit, an engine that queries its budget gets at most the limit.
VKAPI_ATTR void VKAPI_CALL memory_properties_2(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2* into) {
  const Instance* instance = find(instances, physical);
  if (instance == nullptr || instance->memory_2 == nullptr) return;
  instance->memory_2(physical, into);
  const std::uint64_t limit = limit_bytes();
  if (limit == 0) return;
  for (auto* next = static_cast<VkBaseOutStructure*>(into->pNext); next != nullptr; next = next->pNext) {
    if (next->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) continue;
    auto& budget = *reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(next);
    const VkPhysicalDeviceMemoryProperties& memory = into->memoryProperties;
    for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i)
      if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
        budget.heapBudget[i] = std::min<VkDeviceSize>(budget.heapBudget[i], limit);
  }
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice handle, const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_proc(VkInstance handle, const char* name);

PFN_vkVoidFunction device_function(const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return reinterpret_cast<PFN_vkVoidFunction>(&get_device_proc);
  if (std::strcmp(name, "vkDestroyDevice") == 0) return reinterpret_cast<PFN_vkVoidFunction>(&destroy_device);
  return memory_function(name);
}

PFN_vkVoidFunction instance_function(const char* name) {
  struct Named {
    const char* name;
    PFN_vkVoidFunction function;
  };
  static const Named functions[] = {
      {"vkGetInstanceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(&get_instance_proc)},
      {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(&create_instance)},
      {"vkDestroyInstance", reinterpret_cast<PFN_vkVoidFunction>(&destroy_instance)},
      {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(&create_device)},
      {"vkGetPhysicalDeviceMemoryProperties2", reinterpret_cast<PFN_vkVoidFunction>(&memory_properties_2)},
      {"vkGetPhysicalDeviceMemoryProperties2KHR", reinterpret_cast<PFN_vkVoidFunction>(&memory_properties_2)},
  };
  for (const Named& named : functions)
    if (std::strcmp(named.name, name) == 0) return named.function;
  return device_function(name);
}

/// Returns ours only if the next layer has the function, too, so that a missing extension stays missing.
PFN_vkVoidFunction get_device_proc(VkDevice handle, const char* name) {
  const Device* device = find(devices, handle);
  PFN_vkVoidFunction next = device == nullptr ? nullptr : device->get_proc(handle, name);
  PFN_vkVoidFunction ours = next == nullptr ? nullptr : device_function(name);
  return ours != nullptr ? ours : next;
}

PFN_vkVoidFunction get_instance_proc(VkInstance handle, const char* name) {
  PFN_vkVoidFunction ours = instance_function(name);
  // The loader calls the first layer with the handle of an instance that is still to be created.
  if (handle == VK_NULL_HANDLE || ours == reinterpret_cast<PFN_vkVoidFunction>(&create_instance)) return ours;
  const Instance* instance = find(instances, handle);
  PFN_vkVoidFunction next = instance == nullptr ? nullptr : instance->get_proc(handle, name);
  return next != nullptr && ours != nullptr ? ours : next;
}

}  // namespace

Device& device_of(VkDevice handle) {
  return *find(devices, handle);
}

}  // namespace vramtrack::probe::vulkan

/// Avoids the usual name, because the probe is preloaded and must not be mistaken for another layer's function.
extern "C" __attribute__((visibility("default"))) VkResult vramtrack_probe_vulkan(VkNegotiateLayerInterface* layer) {
  using namespace vramtrack::probe::vulkan;
  if (layer == nullptr || layer->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT || layer->loaderLayerInterfaceVersion < 2)
    return VK_ERROR_INITIALIZATION_FAILED;
  layer->loaderLayerInterfaceVersion = 2;
  layer->pfnGetInstanceProcAddr = &get_instance_proc;
  layer->pfnGetDeviceProcAddr = &get_device_proc;
  layer->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

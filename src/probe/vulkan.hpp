// The Vulkan layer's parts: instances and devices, with the next functions in the chain.
#pragma once

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <array>

namespace vramtrack::probe::vulkan {

struct Instance {
  VkInstance handle;
  PFN_vkGetInstanceProcAddr get_proc;
  PFN_vkDestroyInstance destroy;
  PFN_vkGetPhysicalDeviceProperties properties;
  PFN_vkGetPhysicalDeviceProperties2 properties_2;  ///< nullptr in Vulkan 1.0 without the extension
  PFN_vkGetPhysicalDeviceMemoryProperties memory;
  PFN_vkGetPhysicalDeviceMemoryProperties2 memory_2;
};

struct Device {
  VkDevice handle;
  int number;
  /// Whether each memory type is on the device.
  std::array<bool, VK_MAX_MEMORY_TYPES> is_on_device;
  PFN_vkGetDeviceProcAddr get_proc;
  PFN_vkDestroyDevice destroy;
  PFN_vkAllocateMemory allocate;
  PFN_vkFreeMemory free;
  PFN_vkBindBufferMemory bind_buffer;
  PFN_vkBindBufferMemory2 bind_buffer_2;
  PFN_vkBindBufferMemory2 bind_buffer_2_khr;
  PFN_vkBindImageMemory bind_image;
  PFN_vkBindImageMemory2 bind_image_2;
  PFN_vkBindImageMemory2 bind_image_2_khr;
  PFN_vkGetBufferMemoryRequirements buffer_needs;
  PFN_vkGetImageMemoryRequirements image_needs;
  PFN_vkGetImageMemoryRequirements2 image_needs_2;
  PFN_vkDestroyBuffer destroy_buffer;
  PFN_vkDestroyImage destroy_image;
};

/// REQUIRES: the device was created through the layer.
Device& device_of(VkDevice handle);
/// Call when all memory of a device that is being destroyed has been freed.
void forget_memory_of(const Device& device);
/// The layer's own device function `name`; nullptr: use that of the next layer.
PFN_vkVoidFunction memory_function(const char* name);

}  // namespace vramtrack::probe::vulkan

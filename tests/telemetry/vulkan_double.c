/* A double of Vulkan's loader with memory on a device and of the host. */
#include <stdlib.h>
#include <vulkan/vulkan.h>

static int object;

VkResult vkCreateInstance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator, VkInstance* out) {
  (void)info, (void)allocator;
  *out = (VkInstance)&object;
  return VK_SUCCESS;
}

VkResult vkEnumeratePhysicalDevices(VkInstance instance, uint32_t* count, VkPhysicalDevice* out) {
  (void)instance;
  *count = 1;
  *out = (VkPhysicalDevice)&object;
  return VK_SUCCESS;
}

void vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties* out) {
  (void)physical;
  *out = (VkPhysicalDeviceMemoryProperties){.memoryTypeCount = 2};
  out->memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  out->memoryTypes[1].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
}

VkResult vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                        const VkAllocationCallbacks* allocator, VkDevice* out) {
  (void)physical, (void)info, (void)allocator;
  *out = malloc(8);
  return VK_SUCCESS;
}

VkResult vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* allocator,
                          VkDeviceMemory* out) {
  (void)device, (void)info, (void)allocator;
  *out = (VkDeviceMemory)malloc(8);
  return VK_SUCCESS;
}

void vkFreeMemory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* allocator) {
  (void)device, (void)allocator;
  free((void*)memory);
}

PFN_vkVoidFunction vkGetDeviceProcAddr(VkDevice device, const char* name) {
  (void)device, (void)name;
  return NULL;
}

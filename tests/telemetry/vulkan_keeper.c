/* Memory of Vulkan, as it is told. */
#include <vulkan/vulkan.h>

#include "commands.h"

static VkPhysicalDevice physical;
static VkDevice device;
static PFN_vkAllocateMemory allocate_directly;
static PFN_vkFreeMemory free_directly;
static uint32_t local = 0, other = 0; /* kinds of memory */

static void open_device(void) {
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
  const VkDeviceCreateInfo device_info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue};
  VkInstance instance;
  uint32_t devices = 1;
  if (vkCreateInstance(&info, NULL, &instance) != VK_SUCCESS ||
      vkEnumeratePhysicalDevices(instance, &devices, &physical) < 0 || devices == 0)
    give_up("no Vulkan device (mesa-vulkan-drivers)");
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
    *(memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT ? &local : &other) = i;
  vkCreateDevice(physical, &device_info, NULL, &device);
}

__attribute__((noinline)) static VkDeviceMemory memory(PFN_vkAllocateMemory allocate, size_t bytes, uint32_t kind) {
  const VkMemoryAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = bytes, .memoryTypeIndex = kind};
  VkDeviceMemory made = VK_NULL_HANDLE;
  allocate(device, &info, NULL, &made); /* LINE memory */
  return made;
}

static void obey(char command, int number) {
  if (command == 'o') open_device();
  if (command == 'f') {
    allocate_directly = (PFN_vkAllocateMemory)vkGetDeviceProcAddr(device, "vkAllocateMemory");
    free_directly = (PFN_vkFreeMemory)vkGetDeviceProcAddr(device, "vkFreeMemory");
    printf("%#lx %#lx\n", (unsigned long)allocate_directly, (unsigned long)free_directly);
  }
  for (int i = 0; i < number; ++i) {
    if (command == 'k') memory(vkAllocateMemory, MIB, local);
    if (command == 'u') vkFreeMemory(device, memory(vkAllocateMemory, 4 * MIB, local), NULL);
    if (command == 'h') memory(vkAllocateMemory, MIB, other);
    if (command == 'd') memory(allocate_directly, MIB, local);
    if (command == 'e') free_directly(device, memory(allocate_directly, 4 * MIB, local), NULL);
  }
}

/* Takes and releases Vulkan memory as its argument says, and prints what the API answered. Leaks where the name says
 * so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define MIB ((VkDeviceSize)1 << 20)

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;

static int memory_type(uint32_t bits) {
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
    if ((bits >> i & 1U) != 0 && (memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0)
      return (int)i;
  return 0;
}

static VkBuffer buffer(VkDeviceSize bytes) {
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
  VkBuffer made = VK_NULL_HANDLE;
  vkCreateBuffer(device, &info, NULL, &made);
  return made;
}

static VkDeviceMemory memory(VkDeviceSize bytes) {
  const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .allocationSize = bytes,
                                     .memoryTypeIndex = (uint32_t)memory_type(~0U)};
  VkDeviceMemory made = VK_NULL_HANDLE;
  const VkResult result = vkAllocateMemory(device, &info, NULL, &made);
  if (result != VK_SUCCESS) printf("refused %llu: %d\n", (unsigned long long)bytes, result);
  return made;
}

__attribute__((noinline)) static void leak_memory(void) {
  memory(MIB);
}

static void allocations(int is_leaking) {
  for (int i = 0; i < 20; ++i) {
    VkDeviceMemory mine = memory(MIB);
    vkFreeMemory(device, mine, NULL);
    if (is_leaking && i % 2 == 0) leak_memory();
  }
  vkFreeMemory(device, VK_NULL_HANDLE, NULL);
}

static VkImage image(void) {
  const VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                  .imageType = VK_IMAGE_TYPE_2D,
                                  .format = VK_FORMAT_R8G8B8A8_UNORM,
                                  .extent = {512, 512, 1},
                                  .mipLevels = 1,
                                  .arrayLayers = 1,
                                  .samples = VK_SAMPLE_COUNT_1_BIT,
                                  .usage = VK_IMAGE_USAGE_SAMPLED_BIT};
  VkImage made = VK_NULL_HANDLE;
  vkCreateImage(device, &info, NULL, &made);
  return made;
}

/* Buffers within one piece of memory, as an engine's allocator makes them. */
static void blocks(void) {
  VkDeviceMemory pool = memory(16 * MIB);
  VkBuffer buffers[4];
  for (int i = 0; i < 4; ++i) {
    buffers[i] = buffer(MIB);
    vkBindBufferMemory(device, buffers[i], pool, (VkDeviceSize)i * MIB);
  }
  VkBuffer later = buffer(2 * MIB);
  const VkBindBufferMemoryInfo info = {
      .sType = VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_INFO, .buffer = later, .memory = pool, .memoryOffset = 8 * MIB};
  vkBindBufferMemory2(device, 1, &info);
  VkImage picture = image();
  vkBindImageMemory(device, picture, pool, 12 * MIB);
  VkMemoryRequirements needs;
  vkGetImageMemoryRequirements(device, picture, &needs);
  printf("image %llu\n", (unsigned long long)needs.size);
  vkDestroyBuffer(device, buffers[1], NULL);
  vkDestroyBuffer(device, buffers[3], NULL);
  vkDestroyBuffer(device, VK_NULL_HANDLE, NULL);
}

/* Buffers that share bytes count once. */
static void aliases(void) {
  VkDeviceMemory pool = memory(16 * MIB);
  VkBuffer a = buffer(2 * MIB), b = buffer(2 * MIB), c = buffer(4 * MIB), d = buffer(MIB);
  vkBindBufferMemory(device, a, pool, 0);
  vkBindBufferMemory(device, b, pool, 0);
  vkBindBufferMemory(device, c, pool, MIB); /* to 5 MiB */
  vkBindBufferMemory(device, d, pool, 8 * MIB);
  vkDestroyBuffer(device, a, NULL);
  vkDestroyBuffer(device, b, NULL); /* c is still there */
}

/* Freed while something is bound to it; its buffer is destroyed later, when the handle may be another's. */
static void freed(void) {
  VkDeviceMemory first = memory(4 * MIB);
  VkBuffer a = buffer(MIB);
  vkBindBufferMemory(device, a, first, 0);
  vkFreeMemory(device, first, NULL);
  VkDeviceMemory second = memory(8 * MIB);
  VkBuffer b = buffer(2 * MIB);
  vkBindBufferMemory(device, b, second, 0);
  vkDestroyBuffer(device, a, NULL);
}

static void limit(void) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                                  .pNext = &budget};
  budget.heapBudget[0] = 1ULL << 50;
  vkGetPhysicalDeviceMemoryProperties2(physical, &properties);
  printf("budget %llu\n", (unsigned long long)budget.heapBudget[0]);
  VkDeviceMemory a = memory(6 * MIB);
  memory(6 * MIB);
  vkFreeMemory(device, a, NULL);
  printf("again %d\n", memory(6 * MIB) != VK_NULL_HANDLE);
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "healthy";
  const VkApplicationInfo application = {
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
      .apiVersion = strcmp(what, "old") == 0 ? VK_API_VERSION_1_0 : VK_API_VERSION_1_1};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
  const VkDeviceCreateInfo device_info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue};
  uint32_t devices = 1;
  const VkResult result = vkCreateInstance(&info, NULL, &instance);
  if (result == VK_ERROR_LAYER_NOT_PRESENT) return 1;
  if (result != VK_SUCCESS || vkEnumeratePhysicalDevices(instance, &devices, &physical) < 0 || devices == 0) {
    printf("no Vulkan device\n");
    return 77;
  }
  if (vkCreateDevice(physical, &device_info, NULL, &device) != VK_SUCCESS) return 1;
  const int is_absent = vkGetDeviceProcAddr(device, "vkNoSuchFunction") == NULL;
  if (!is_absent) return 1;
  if (strcmp(what, "healthy") == 0) allocations(0);
  if (strcmp(what, "leak") == 0 || strcmp(what, "destroy") == 0 || strcmp(what, "old") == 0) allocations(1);
  if (strcmp(what, "blocks") == 0) blocks();
  if (strcmp(what, "aliases") == 0) aliases();
  if (strcmp(what, "freed") == 0) freed();
  if (strcmp(what, "limit") == 0) limit();
  if (strcmp(what, "destroy") == 0) {
    blocks();
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
  }
  return 0;
}

/* A renderer whose window is resized. The image of the old size is destroyed, and its memory forgotten. */
#include "vulkan_setup.h"

typedef struct {
  VkImage image;
  VkDeviceMemory memory;
} Target;

static Target make_target(uint32_t width, uint32_t height) {
  Target target;
  VkImageCreateInfo of_image = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                .imageType = VK_IMAGE_TYPE_2D,
                                .format = VK_FORMAT_R8G8B8A8_UNORM,
                                .extent = {width, height, 1},
                                .mipLevels = 1,
                                .arrayLayers = 1,
                                .samples = VK_SAMPLE_COUNT_1_BIT,
                                .usage = VK_IMAGE_USAGE_SAMPLED_BIT};
  check(vkCreateImage(device, &of_image, NULL, &target.image), "vkCreateImage");
  VkMemoryRequirements needs;
  vkGetImageMemoryRequirements(device, target.image, &needs);
  VkMemoryAllocateInfo of_memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .allocationSize = needs.size,
                                    .memoryTypeIndex = memory_type(needs.memoryTypeBits)};
  check(vkAllocateMemory(device, &of_memory, NULL, &target.memory), "vkAllocateMemory");  // LEAK HERE
  check(vkBindImageMemory(device, target.image, target.memory, 0), "vkBindImageMemory");
  return target;
}

int main(void) {
  use_device();
  Target target = make_target(640, 480);
  for (int resize = 0; resize < 60; ++resize) {
    vkDestroyImage(device, target.image, NULL);
    target = make_target(640 + (uint32_t)resize % 8 * 16, 480);
  }
  vkDestroyImage(device, target.image, NULL);
  vkFreeMemory(device, target.memory, NULL);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
  return 0;
}

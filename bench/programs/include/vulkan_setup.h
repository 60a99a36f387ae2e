/* The first lines of every program on Vulkan. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

#define MIB ((VkDeviceSize)1 << 20)
#define NO_DEVICE 77

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;

static void check(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, result);
  exit(1);
}

static void use_device(void) {
  VkApplicationInfo application = {};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo of_instance = {};
  of_instance.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  of_instance.pApplicationInfo = &application;
  uint32_t count = 1;
  if (vkCreateInstance(&of_instance, NULL, &instance) != VK_SUCCESS ||
      vkEnumeratePhysicalDevices(instance, &count, &physical) < VK_SUCCESS || count == 0) {
    fprintf(stderr, "no Vulkan device\n");
    exit(NO_DEVICE);
  }
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo of_queue = {};
  of_queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  of_queue.queueCount = 1;
  of_queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo of_device = {};
  of_device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  of_device.queueCreateInfoCount = 1;
  of_device.pQueueCreateInfos = &of_queue;
  check(vkCreateDevice(physical, &of_device, NULL, &device), "vkCreateDevice");
}

static uint32_t memory_type(uint32_t bits) {
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
    if ((bits >> i & 1U) != 0 && (memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0)
      return i;
  return 0;
}

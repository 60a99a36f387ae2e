// An engine's allocator: buffers lie in one pool of 16 MiB, by slots. A chunk of terrain that leaves the view gives its
// slot to the next one.
#include <deque>
#include <vector>

#include "vulkan_setup.h"

namespace {

constexpr VkDeviceSize kSlot = MIB / 2;
constexpr int kSlots = 32;

struct Pool {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::vector<int> free_slots;

  Pool() {
    VkMemoryAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = kSlot * kSlots;
    info.memoryTypeIndex = memory_type(~0U);
    check(vkAllocateMemory(device, &info, nullptr, &memory), "vkAllocateMemory");
    for (int slot = kSlots - 1; slot >= 0; --slot) free_slots.push_back(slot);
  }
};

struct Chunk {
  VkBuffer vertices = VK_NULL_HANDLE;
  int slot = 0;
};

Chunk make_chunk(Pool& pool) {
  Chunk chunk;
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = kSlot;
  info.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
  check(vkCreateBuffer(device, &info, nullptr, &chunk.vertices), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, chunk.vertices, &needs);
  chunk.slot = pool.free_slots.back();
  pool.free_slots.pop_back();
  check(vkBindBufferMemory(device, chunk.vertices, pool.memory, static_cast<VkDeviceSize>(chunk.slot) * kSlot), "bind");
  return chunk;
}

}  // namespace

int main() {
  use_device();
  Pool pool;
  std::deque<Chunk> in_view;
  for (int step = 0; step < 300; ++step) {
    in_view.push_back(make_chunk(pool));
    if (in_view.size() > 24) {
      vkDestroyBuffer(device, in_view.front().vertices, nullptr);
      pool.free_slots.push_back(in_view.front().slot);
      in_view.pop_front();
    }
  }
}

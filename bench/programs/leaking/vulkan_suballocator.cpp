// An engine's allocator: buffers lie in pools of 8 MiB. A chunk of terrain that leaves the view keeps its buffer.
#include <memory>
#include <vector>

#include "vulkan_setup.h"

namespace {

constexpr VkDeviceSize kPool = 8 * MIB;

class Allocator {
 public:
  void place(VkBuffer buffer) {
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    const VkDeviceSize bytes = (needs.size + needs.alignment - 1) / needs.alignment * needs.alignment;
    if (pools_.empty() || used_ + bytes > kPool) add_pool(needs.memoryTypeBits);
    check(vkBindBufferMemory(device, buffer, pools_.back(), used_), "vkBindBufferMemory");  // LEAK HERE
    used_ += bytes;
  }

 private:
  void add_pool(uint32_t bits) {
    VkMemoryAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = kPool;
    info.memoryTypeIndex = memory_type(bits);
    VkDeviceMemory pool = VK_NULL_HANDLE;
    check(vkAllocateMemory(device, &info, nullptr, &pool), "vkAllocateMemory");
    pools_.push_back(pool);
    used_ = 0;
  }
  std::vector<VkDeviceMemory> pools_;
  VkDeviceSize used_ = 0;
};

VkBuffer make_buffer(Allocator& allocator, VkDeviceSize bytes) {
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  check(vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer");
  allocator.place(buffer);
  return buffer;
}

struct Chunk {
  VkBuffer vertices;
};

}  // namespace

int main() {
  use_device();
  Allocator allocator;
  std::vector<Chunk> in_view;
  for (int step = 0; step < 200; ++step) {
    in_view.push_back({make_buffer(allocator, MIB / 2)});
    if (in_view.size() > 12) in_view.erase(in_view.begin());
  }
}

// Memory of graphs: what the nodes of all graphs ask for is reserved at a launch, and stays until it is trimmed.
#include <algorithm>
#include <cstring>

#include "../shared_state.hpp"
#include "driver.hpp"

using namespace fake_gpu;

namespace {

struct GraphMemory {
  std::uint64_t wanted = 0, reserved = 0;
};
std::array<GraphMemory, kMaxDevices> graph_memory;

GraphMemory& of(int device) {
  return graph_memory.at(static_cast<std::size_t>(device));
}

/// CUDA_MEM_ALLOC_NODE_PARAMS
struct AllocationNode {
  AllocationProperties pool;
  char rest_of_pool[72];
  const void* access;
  std::size_t access_count, bytes;
  CUdeviceptr address;
};
static_assert(sizeof(AllocationNode) == 120);

}  // namespace

EXPORT CUresult cuGraphAddMemAllocNode(std::uint64_t* node, void* graph, void* const* before, std::size_t count,
                                       AllocationNode* parameters) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  *node = next_handle();
  parameters->address = next_handle() << 32U;
  of(parameters->pool.location.id).wanted += parameters->bytes;
  return kOk;
}
EXPORT CUresult cuGraphAddNode_v2(std::uint64_t* node, void* graph, void* const* before, const void* edges,
                                  std::size_t count, int* parameters) {
  constexpr int kAllocates = 10;
  *node = next_handle();
  if (parameters[0] != kAllocates) return kOk;
  AllocationNode allocation{};
  std::memcpy(&allocation, parameters + 4, sizeof allocation);
  return cuGraphAddMemAllocNode(node, graph, before, count, &allocation);
}
EXPORT CUresult cuGraphLaunch(std::uint64_t executable, void* stream) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  for (int device = 0; device < device_count(); ++device) {
    GraphMemory& memory = of(device);
    if (memory.wanted <= memory.reserved) continue;
    const std::uint64_t more = memory.wanted - memory.reserved;
    const CUresult code = SharedState::get().charge(device, more) ? kOk : kOutOfMemory;
    trace("graph", device, 0, more, code);
    if (code != kOk) return code;
    memory.reserved = memory.wanted;
  }
  return kOk;
}
EXPORT CUresult cuGraphLaunch_ptsz(std::uint64_t executable, void* stream) {
  return cuGraphLaunch(executable, stream);
}
EXPORT CUresult cuGraphExecDestroy(std::uint64_t executable) {
  give_back_beside(executable);
  return kOk;
}
EXPORT CUresult cuDeviceGetGraphMemAttribute(int device, int attribute, std::uint64_t* value) {
  constexpr int kUsed = 0, kReserved = 2;
  *value = attribute == kUsed || attribute == kReserved ? of(device).reserved : 0;
  return kOk;
}
EXPORT CUresult cuDeviceSetGraphMemAttribute(int device, int attribute, std::uint64_t* value) {
  return kOk;
}
EXPORT CUresult cuDeviceGraphMemTrim(int device) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  if (of(device).reserved != 0) SharedState::get().give_back(device, of(device).reserved);
  of(device) = {};
  return kOk;
}

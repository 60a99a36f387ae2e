#include "probe/cuda/graphs.hpp"

#include <atomic>

#include "probe/cuda/cuda.hpp"

VRAMTRACK_CUDA_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void* value);

namespace vramtrack::probe::cuda {
namespace {

/// Devices on which graphs allocate; bit i is device i.
std::atomic<std::uint32_t> devices{0};
/// The memory recorded for each device.
std::atomic<std::uint64_t> recorded[kMostDevices];

std::uint64_t key_of_device(int device) {
  return kHandle | 0x6772'6170'6800U | static_cast<unsigned>(device);  // "graph"
}

void look_at(int device) {
  constexpr int kReservedNow = 2;
  std::uint64_t bytes = 0;
  if (REAL(cuDeviceGetGraphMemAttribute)(device, kReservedNow, &bytes) != kSuccess) return;
  if (recorded[device].exchange(bytes, std::memory_order_relaxed) == bytes) return;
  gave_back(Level::driver, key_of_device(device));
  if (bytes == 0) return;
  // A limit cannot refuse memory that a graph has already taken. It counts, so the next allocation is refused.
  introduce(device);
  took_block(Call::cu_graph_memory, device, key_of_device(device), bytes);
}

void look() {
  std::uint32_t left = devices.load(std::memory_order_relaxed);
  for (int device = 0; left != 0; ++device, left >>= 1U)
    if ((left & 1U) != 0) look_at(device);
}

template <class CallDriver>
CUresult then_look(CallDriver call_driver) {
  const CUresult code = call_driver();
  look();
  return code;
}

}  // namespace

void graph_allocates(int device) {
  if (device >= 0 && static_cast<std::size_t>(device) < kMostDevices)
    devices.fetch_or(1U << static_cast<unsigned>(device), std::memory_order_relaxed);
}

void forget_graphs() {
  devices.store(0, std::memory_order_relaxed);
  for (auto& bytes : recorded) bytes.store(0, std::memory_order_relaxed);
}

}  // namespace vramtrack::probe::cuda

using namespace vramtrack::probe::cuda;

namespace {

/// CUDA_MEM_ALLOC_NODE_PARAMS begins with the properties of a pool.
int device_of_node(const CUmemAllocationProp* pool) {
  return pool->location.type == kOnDevice ? pool->location.id : current_device();
}

/// CUgraphNodeParams: a kind, twelve bytes of padding, and the kind's parameters.
struct NodeParameters {
  int kind;
  int spare[3];
  CUmemAllocationProp pool;
};

void saw_node(const NodeParameters* parameters) {
  constexpr int kAllocates = 10;
  if (parameters != nullptr && parameters->kind == kAllocates) graph_allocates(device_of_node(&parameters->pool));
}

}  // namespace

VRAMTRACK_CUDA_EXPORT CUresult cuGraphAddMemAllocNode(void** node, void* graph, void* const* before, std::size_t count,
                                                      CUmemAllocationProp* parameters) {
  const CUresult code = REAL(cuGraphAddMemAllocNode)(node, graph, before, count, parameters);
  if (code == kSuccess) graph_allocates(device_of_node(parameters));
  return code;
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphAddNode(void** node, void* graph, void* const* before, std::size_t count,
                                              NodeParameters* parameters) {
  const CUresult code = REAL(cuGraphAddNode)(node, graph, before, count, parameters);
  if (code == kSuccess) saw_node(parameters);
  return code;
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphAddNode_v2(void** node, void* graph, void* const* before, const void* edges,
                                                 std::size_t count, NodeParameters* parameters) {
  const CUresult code = REAL(cuGraphAddNode_v2)(node, graph, before, edges, count, parameters);
  if (code == kSuccess) saw_node(parameters);
  return code;
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphLaunch(void* executable, CUstream stream) {
  return then_look([&] { return REAL(cuGraphLaunch)(executable, stream); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphLaunch_ptsz(void* executable, CUstream stream) {
  return then_look([&] { return REAL(cuGraphLaunch_ptsz)(executable, stream); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphUpload(void* executable, CUstream stream) {
  return then_look([&] { return REAL(cuGraphUpload)(executable, stream); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphUpload_ptsz(void* executable, CUstream stream) {
  return then_look([&] { return REAL(cuGraphUpload_ptsz)(executable, stream); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphExecDestroy(void* executable) {
  return then_look([&] { return release(key_of(executable), [&] { return REAL(cuGraphExecDestroy)(executable); }); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return then_look([&] { return REAL(cuDeviceGraphMemTrim)(device); });
}

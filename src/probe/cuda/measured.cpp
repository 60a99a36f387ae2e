// Memory that the driver takes without reporting how much: contexts, loaded code, instantiated graphs. It is the
// decrease of the device's free memory over the call, less what this process allocated meanwhile. It includes what
// other processes allocate at that moment, so the size is an estimate. On a device without a context, the driver cannot
// be queried before the call, so its first context is not measured.
#include "probe/cuda/measured.hpp"

using namespace vramtrack::probe;
using namespace vramtrack::probe::cuda;

VRAMTRACK_CUDA_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes);
VRAMTRACK_CUDA_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int* mode);

namespace vramtrack::probe::cuda {
namespace {

/// The free memory; 0: unknown. While a stream is captured, the driver refuses calls that could wait, but not this one.
std::uint64_t free_now() {
  constexpr int kRelaxed = 2;
  int mode = kRelaxed;
  auto* const exchange = REAL_IF_ANY(cuThreadExchangeStreamCaptureMode);
  const bool is_exchanged = exchange != nullptr && exchange(&mode) == kSuccess;
  std::size_t bytes = 0, total = 0;
  const CUresult code = REAL(cuMemGetInfo_v2)(&bytes, &total);
  if (is_exchanged) exchange(&mode);
  return code == kSuccess ? bytes : 0;
}

}  // namespace

Measure::Measure(int device)
    : device_(device >= 0 && current_device() == device ? device : -1),
      free_before_(device_ < 0 ? 0 : free_now()),
      held_before_(device_ < 0 ? 0 : held_bytes(device_)) {}

std::uint64_t Measure::taken_bytes() const {
  if (free_before_ == 0 || current_device() != device_) return 0;
  const std::uint64_t after = free_now(), held = held_bytes(device_);
  if (after == 0 || after >= free_before_) return 0;
  const std::uint64_t ours = held > held_before_ ? held - held_before_ : 0;
  const std::uint64_t all = free_before_ - after;
  return all > ours ? all - ours : 0;
}

}  // namespace vramtrack::probe::cuda

VRAMTRACK_CUDA_EXPORT CUresult cuModuleLoad(void** module, const char* path) {
  return take_measured(Call::cu_module, current_device(), Life::of_context, module,
                       [&] { return REAL(cuModuleLoad)(module, path); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuModuleLoadData(void** module, const void* image) {
  return take_measured(Call::cu_module, current_device(), Life::of_context, module,
                       [&] { return REAL(cuModuleLoadData)(module, image); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options,
                                                  void** values) {
  return take_measured(Call::cu_module, current_device(), Life::of_context, module,
                       [&] { return REAL(cuModuleLoadDataEx)(module, image, count, options, values); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuModuleLoadFatBinary(void** module, const void* image) {
  return take_measured(Call::cu_module, current_device(), Life::of_context, module,
                       [&] { return REAL(cuModuleLoadFatBinary)(module, image); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuModuleUnload(void* module) {
  return release(key_of(module), [&] { return REAL(cuModuleUnload)(module); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuLibraryLoadData(void** library, const void* code, int* jit_options, void** jit_values,
                                                 unsigned jit_count, int* options, void** values, unsigned count) {
  return take_measured(Call::cu_library, current_device(), Life::of_device, library, [&] {
    return REAL(cuLibraryLoadData)(library, code, jit_options, jit_values, jit_count, options, values, count);
  });
}
VRAMTRACK_CUDA_EXPORT CUresult cuLibraryLoadFromFile(void** library, const char* path, int* jit_options,
                                                     void** jit_values, unsigned jit_count, int* options, void** values,
                                                     unsigned count) {
  return take_measured(Call::cu_library, current_device(), Life::of_device, library, [&] {
    return REAL(cuLibraryLoadFromFile)(library, path, jit_options, jit_values, jit_count, options, values, count);
  });
}
VRAMTRACK_CUDA_EXPORT CUresult cuLibraryUnload(void* library) {
  return release(key_of(library), [&] { return REAL(cuLibraryUnload)(library); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphInstantiate(void** executable, void* graph, void** node, char* log,
                                                  std::size_t log_bytes) {
  return take_measured(Call::cu_graph_exec, current_device(), Life::of_context, executable,
                       [&] { return REAL(cuGraphInstantiate)(executable, graph, node, log, log_bytes); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphInstantiate_v2(void** executable, void* graph, void** node, char* log,
                                                     std::size_t log_bytes) {
  return take_measured(Call::cu_graph_exec, current_device(), Life::of_context, executable,
                       [&] { return REAL(cuGraphInstantiate_v2)(executable, graph, node, log, log_bytes); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphInstantiateWithFlags(void** executable, void* graph, std::uint64_t flags) {
  return take_measured(Call::cu_graph_exec, current_device(), Life::of_context, executable,
                       [&] { return REAL(cuGraphInstantiateWithFlags)(executable, graph, flags); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphInstantiateWithParams(void** executable, void* graph, void* parameters) {
  return take_measured(Call::cu_graph_exec, current_device(), Life::of_context, executable,
                       [&] { return REAL(cuGraphInstantiateWithParams)(executable, graph, parameters); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(void** executable, void* graph, void* parameters) {
  return take_measured(Call::cu_graph_exec, current_device(), Life::of_context, executable,
                       [&] { return REAL(cuGraphInstantiateWithParams_ptsz)(executable, graph, parameters); });
}

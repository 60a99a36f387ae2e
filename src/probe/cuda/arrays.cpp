// Arrays: memory in the layout of textures, with a size that the driver seldom reports.
#include "probe/cuda/array_bytes.hpp"
#include "probe/cuda/cuda.hpp"

using namespace vramtrack::probe;
using namespace vramtrack::probe::cuda;

/// CUDA_ARRAY_MEMORY_REQUIREMENTS
struct ArrayRequirements {
  std::size_t bytes, alignment;
  unsigned reserved[4];
};

VRAMTRACK_CUDA_EXPORT CUresult cuArrayGetMemoryRequirements(ArrayRequirements* into, CUarray array, CUdevice device);
VRAMTRACK_CUDA_EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(ArrayRequirements* into, void* array,
                                                                     CUdevice device);

namespace {

/// The size as reported by the driver, else computed. Memory that is bound later is counted where it is created.
template <class Requirements>
Taken taken(Requirements requirements, void* array, int device, std::uint64_t computed_bytes) {
  ArrayRequirements wanted{};
  if (computed_bytes == 0) return {};
  if (requirements(&wanted, array, device) == kSuccess && wanted.bytes != 0) return {key_of(array), wanted.bytes};
  return {key_of(array), computed_bytes, kEstimated};
}

template <class CallDriver>
CUresult create(CUarray* into, std::uint64_t bytes, CallDriver call_driver) {
  const int device = current_device();
  return allocate(Call::cu_array_create, device, bytes, Life::of_context, call_driver,
                  [&] { return taken(REAL(cuArrayGetMemoryRequirements), *into, device, bytes); });
}

}  // namespace

VRAMTRACK_CUDA_EXPORT CUresult cuArrayCreate_v2(CUarray* into, const ArrayShape* shape) {
  return create(into, array_bytes(shape), [&] { return REAL(cuArrayCreate_v2)(into, shape); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuArray3DCreate_v2(CUarray* into, const ArrayShape3d* shape) {
  return create(into, array_bytes(shape, 1), [&] { return REAL(cuArray3DCreate_v2)(into, shape); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuArrayDestroy(CUarray array) {
  return release(key_of(array), [&] { return REAL(cuArrayDestroy)(array); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMipmappedArrayCreate(void** into, const ArrayShape3d* shape, unsigned levels) {
  const int device = current_device();
  const std::uint64_t bytes = array_bytes(shape, levels);
  return allocate(
      Call::cu_mipmapped_array_create, device, bytes, Life::of_context,
      [&] { return REAL(cuMipmappedArrayCreate)(into, shape, levels); },
      [&] { return taken(REAL(cuMipmappedArrayGetMemoryRequirements), *into, device, bytes); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMipmappedArrayDestroy(void* array) {
  return release(key_of(array), [&] { return REAL(cuMipmappedArrayDestroy)(array); });
}

// Contexts: destroying one frees the memory that it owns. An address that a context frees can be reused only by later
// driver calls, so the context's memory is recorded as freed before it is destroyed.
#include "probe/cuda/measured.hpp"

using namespace vramtrack::probe;
using namespace vramtrack::probe::cuda;

VRAMTRACK_CUDA_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* is_active);
VRAMTRACK_CUDA_EXPORT CUresult cuCtxGetCurrent(CUcontext* context);

namespace {

template <class CallDriver>
CUresult create(CUcontext* context, CUdevice device, CallDriver call_driver) {
  return take_measured(Call::cu_context, device, Life::of_context, context, [&] {
    const CUresult code = call_driver();
    if (code == kSuccess && context != nullptr) context_began(*context);
    return code;
  });
}

/// Whether the context is gone is known only afterwards, because others may have retained it, too.
template <class CallDriver>
CUresult release_primary(CUdevice device, CallDriver call_driver) {
  const CUresult code = call_driver();
  unsigned flags = 0;
  int is_active = 1;
  if (code == kSuccess && REAL(cuDevicePrimaryCtxGetState)(device, &flags, &is_active) == kSuccess && is_active == 0)
    primary_context_ended(device, false);
  return code;
}

template <class CallDriver>
CUresult reset_primary(CUdevice device, CallDriver call_driver) {
  const CUresult code = call_driver();
  if (code == kSuccess) primary_context_ended(device, true);
  return code;
}

template <class CallDriver>
CUresult destroy(CUcontext context, CallDriver call_driver) {
  context_ended(context);
  return call_driver();
}

}  // namespace

VRAMTRACK_CUDA_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return create(context, device, [&] { return REAL(cuCtxCreate_v2)(context, flags, device); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuCtxCreate_v3(CUcontext* context, void* affinity, int count, unsigned flags,
                                              CUdevice device) {
  return create(context, device, [&] { return REAL(cuCtxCreate_v3)(context, affinity, count, flags, device); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuCtxCreate_v4(CUcontext* context, void* parameters, unsigned flags, CUdevice device) {
  return create(context, device, [&] { return REAL(cuCtxCreate_v4)(context, parameters, flags, device); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuCtxDestroy(CUcontext context) {
  return destroy(context, [&] { return REAL(cuCtxDestroy)(context); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  return destroy(context, [&] { return REAL(cuCtxDestroy_v2)(context); });
}
/// Contexts are reference-counted: only the last release frees the memory. This adds a reference to the current one.
VRAMTRACK_CUDA_EXPORT CUresult cuCtxAttach(CUcontext* context, unsigned flags) {
  const CUresult code = REAL(cuCtxAttach)(context, flags);
  if (code == kSuccess && context != nullptr) context_attached(*context);
  return code;
}
VRAMTRACK_CUDA_EXPORT CUresult cuCtxDetach(CUcontext context) {
  const std::uint64_t references = context_detaches(context);
  const CUresult code = REAL(cuCtxDetach)(context);
  if (code != kSuccess && references != 0) context_kept(context, references);
  return code;
}
VRAMTRACK_CUDA_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return release_primary(device, [&] { return REAL(cuDevicePrimaryCtxRelease)(device); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return release_primary(device, [&] { return REAL(cuDevicePrimaryCtxRelease_v2)(device); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return reset_primary(device, [&] { return REAL(cuDevicePrimaryCtxReset)(device); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return reset_primary(device, [&] { return REAL(cuDevicePrimaryCtxReset_v2)(device); });
}
/// A green context is a share of a primary one, which may be destroyed with its last share.
VRAMTRACK_CUDA_EXPORT CUresult cuGreenCtxDestroy(void* context) {
  const int device = current_device();
  const auto call_driver = [&] { return REAL(cuGreenCtxDestroy)(context); };
  return device < 0 ? call_driver() : release_primary(device, call_driver);
}

// What the parts of the fake libcudart share. It finds the driver as programs do, by dlopen and cuGetProcAddress_v2,
// and sends memory, streams and capture through it: whatever stands between a program and libcuda sees a real program's
// calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default")))

/// cudaError_t. The runtime's numbers of the errors that occur here are the driver's.
using cudaError = int;

namespace fake_runtime {

enum Code : cudaError {
  kOk = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kDriverTooOld = 35,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kNotFound = 500,
  kNotSupported = 801
};

using Address = unsigned long long;
struct IpcHandle {
  std::array<char, 64> bytes;
};

// name of the driver's function, the CUDA version whose form is asked for, arguments
// clang-format off
#define FAKE_RUNTIME_DRIVER_CALLS(X) \
  X(cuInit, 2000, (unsigned)) \
  X(cuDriverGetVersion, 2020, (int*)) \
  X(cuDeviceGetCount, 2000, (int*)) \
  X(cuDeviceGetName, 2000, (char*, int, int)) \
  X(cuDeviceTotalMem, 3020, (std::size_t*, int)) \
  X(cuDeviceGetAttribute, 2000, (int*, int, int)) \
  X(cuDeviceGetUuid, 9020, (unsigned char*, int)) \
  X(cuDeviceGetPCIBusId, 4010, (char*, int, int)) \
  X(cuDeviceGetByPCIBusId, 4010, (int*, const char*)) \
  X(cuDeviceCanAccessPeer, 4000, (int*, int, int)) \
  X(cuDevicePrimaryCtxRetain, 7000, (void**, int)) \
  X(cuCtxSetCurrent, 4000, (void*)) \
  X(cuCtxSynchronize, 2000, ()) \
  X(cuCtxGetStreamPriorityRange, 5050, (int*, int*)) \
  X(cuMemGetInfo, 3020, (std::size_t*, std::size_t*)) \
  X(cuMemAlloc, 3020, (Address*, std::size_t)) \
  X(cuMemAllocPitch, 3020, (Address*, std::size_t*, std::size_t, std::size_t, unsigned)) \
  X(cuMemAllocManaged, 6000, (Address*, std::size_t, unsigned)) \
  X(cuMemFree, 3020, (Address)) \
  X(cuMemAllocAsync, 11020, (Address*, std::size_t, void*)) \
  X(cuMemFreeAsync, 11020, (Address, void*)) \
  X(cuMemAllocFromPoolAsync, 11020, (Address*, std::size_t, void*, void*)) \
  X(cuDeviceGetDefaultMemPool, 11020, (void**, int)) \
  X(cuDeviceGetMemPool, 11020, (void**, int)) \
  X(cuDeviceSetMemPool, 11020, (int, void*)) \
  X(cuMemPoolCreate, 11020, (void**, const void*)) \
  X(cuMemPoolDestroy, 11020, (void*)) \
  X(cuMemPoolTrimTo, 11020, (void*, std::size_t)) \
  X(cuMemPoolSetAttribute, 11020, (void*, int, void*)) \
  X(cuMemPoolGetAttribute, 11020, (void*, int, void*)) \
  X(cuMemPoolSetAccess, 11020, (void*, const void*, std::size_t)) \
  X(cuDeviceGetGraphMemAttribute, 11040, (int, int, void*)) \
  X(cuDeviceSetGraphMemAttribute, 11040, (int, int, void*)) \
  X(cuDeviceGraphMemTrim, 11040, (int)) \
  X(cuMemHostAlloc, 2020, (void**, std::size_t, unsigned)) \
  X(cuMemFreeHost, 2000, (void*)) \
  X(cuMemHostRegister, 6050, (void*, std::size_t, unsigned)) \
  X(cuMemHostUnregister, 4000, (void*)) \
  X(cuMemHostGetDevicePointer, 3020, (Address*, void*, unsigned)) \
  X(cuPointerGetAttribute, 4000, (void*, int, Address)) \
  X(cuMemcpy, 4000, (Address, Address, std::size_t)) \
  X(cuMemcpyAsync, 4000, (Address, Address, std::size_t, void*)) \
  X(cuMemsetD8, 3020, (Address, unsigned char, std::size_t)) \
  X(cuMemsetD8Async, 3020, (Address, unsigned char, std::size_t, void*)) \
  X(cuIpcGetMemHandle, 4010, (void*, Address)) \
  X(cuIpcCloseMemHandle, 4010, (Address)) \
  X(cuIpcOpenMemHandle, 11000, (Address*, IpcHandle, unsigned)) \
  X(cuIpcGetEventHandle, 4010, (void*, void*)) \
  X(cuIpcOpenEventHandle, 4010, (void**, IpcHandle)) \
  X(cuStreamCreateWithPriority, 5050, (void**, unsigned, int)) \
  X(cuStreamDestroy, 4000, (void*)) \
  X(cuStreamSynchronize, 2000, (void*)) \
  X(cuStreamQuery, 2000, (void*)) \
  X(cuStreamWaitEvent, 3020, (void*, void*, unsigned)) \
  X(cuStreamGetPriority, 5050, (void*, int*)) \
  X(cuStreamGetFlags, 5050, (void*, unsigned*)) \
  X(cuStreamAddCallback, 5000, (void*, void*, void*, unsigned)) \
  X(cuLaunchHostFunc, 10000, (void*, void*, void*)) \
  X(cuThreadExchangeStreamCaptureMode, 10010, (int*)) \
  X(cuStreamBeginCapture, 10010, (void*, int)) \
  X(cuStreamEndCapture, 10000, (void*, void**)) \
  X(cuStreamIsCapturing, 10000, (void*, int*)) \
  X(cuStreamGetCaptureInfo, 12030, (void*, int*, std::uint64_t*, void**, const void***, const void**, std::size_t*)) \
  X(cuGraphCreate, 10000, (void**, unsigned)) \
  X(cuGraphDestroy, 10000, (void*)) \
  X(cuGraphInstantiateWithFlags, 11040, (void**, void*, std::uint64_t)) \
  X(cuGraphLaunch, 10000, (void*, void*)) \
  X(cuGraphExecDestroy, 10000, (void*)) \
  X(cuGraphGetNodes, 10000, (void*, void**, std::size_t*)) \
  X(cuEventCreate, 2000, (void**, unsigned)) \
  X(cuEventDestroy, 4000, (void*)) \
  X(cuEventQuery, 2000, (void*)) \
  X(cuEventRecord, 2000, (void*, void*)) \
  X(cuEventRecordWithFlags, 11010, (void*, void*, unsigned)) \
  X(cuEventSynchronize, 2000, (void*)) \
  X(cuEventElapsedTime, 2000, (float*, void*, void*))
// clang-format on

#define FAKE_RUNTIME_FIELD(name, version, arguments) cudaError(*name) arguments;
struct Driver {
  FAKE_RUNTIME_DRIVER_CALLS(FAKE_RUNTIME_FIELD)
  cudaError (*cuGetProcAddress_v2)(const char*, void**, int, std::uint64_t, int*);
};
#undef FAKE_RUNTIME_FIELD

/// The driver's functions; valid after started() returned kOk.
extern Driver driver;

/// Loads the driver on first use.
cudaError started();
/// started(), and the context of this thread's device made on first use and made current.
cudaError entered();
/// Remembers an error for cudaGetLastError, and returns the code.
cudaError remember(cudaError code);
bool known_device(int device);

/// A call that needs a context, and one that needs none.
template <class Call>
cudaError in_context(Call call) {
  const cudaError code = entered();
  return code != kOk ? code : remember(call());
}
template <class Call>
cudaError without_context(Call call) {
  const cudaError code = started();
  return remember(code != kOk ? code : call());
}

}  // namespace fake_runtime

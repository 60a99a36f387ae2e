/* The first lines of every program on the driver API. */
#pragma once
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

#define CHECK(call)                                                         \
  do {                                                                      \
    CUresult code_ = (call);                                                \
    if (code_ != CUDA_SUCCESS) {                                            \
      fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, code_); \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

static CUcontext use_device(int ordinal) {
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, ordinal));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  return context;
}

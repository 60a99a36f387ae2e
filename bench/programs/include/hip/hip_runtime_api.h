/* What the programs use of HIP, under its own names. */
#pragma once
#include <stddef.h>

typedef int hipError_t;
typedef void* hipStream_t;
enum { hipSuccess = 0 };

hipError_t hipSetDevice(int device);
hipError_t hipMalloc(void** memory, size_t bytes);
hipError_t hipMallocAsync(void** memory, size_t bytes, hipStream_t stream);
hipError_t hipFree(void* memory);
hipError_t hipFreeAsync(void* memory, hipStream_t stream);
hipError_t hipHostMalloc(void** memory, size_t bytes, unsigned flags);
hipError_t hipHostFree(void* memory);

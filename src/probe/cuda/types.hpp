// The CUDA driver's types that the hooks need, without NVIDIA's headers.
#pragma once

#include <cstddef>
#include <cstdint>

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = void*;
using CUstream = void*;
using CUarray = void*;
using CUmemoryPool = void*;
using CUmemGenericAllocationHandle = unsigned long long;

/// CUmemLocation, which is also the common beginning of CUmemAllocationProp and CUmemPoolProps.
struct CUmemLocation {
  int type, id;
};
struct CUmemAllocationProp {
  int type, handle_types;
  CUmemLocation location;
};

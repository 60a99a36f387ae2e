// The types of the CUDA driver as far as they are needed. None of NVIDIA's headers is used.
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

/// CUmemLocation, and the beginning that CUmemAllocationProp and CUmemPoolProps have in common.
struct CUmemLocation {
  int type, id;
};
struct CUmemAllocationProp {
  int type, handle_types;
  CUmemLocation location;
};

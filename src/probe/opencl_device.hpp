// The device to which the memory of an OpenCL context is attributed.
#pragma once

#include "probe/opencl.hpp"

namespace vramtrack::probe::opencl {

/// The context's first device: OpenCL does not report which device a buffer is on. Records the device if it is new.
int device_of(const Next& next, cl_context context);

}  // namespace vramtrack::probe::opencl

// Which device the memory of an OpenCL context counts for.
#pragma once

#include "probe/opencl.hpp"

namespace vramtrack::probe::opencl {

/// The context's first: OpenCL does not say on which of its devices a buffer lies. Tells of the device when it is new.
int device_of(const Next& next, cl_context context);

}  // namespace vramtrack::probe::opencl

// Defines OpenCL's functions by name: programs and libraries linked with libOpenCL call these because the probe is
// loaded first.
#include <atomic>

#include "probe/opencl.hpp"
#include "probe/real.hpp"
#include "probe/recorder.hpp"
#include "probe/self.hpp"

#define PROBE_EXPORT extern "C" __attribute__((visibility("default")))

namespace vramtrack::probe::opencl {
namespace {

Next functions;  ///< the functions used here; the others are nullptr
std::atomic<std::uint64_t> found_at{0};
Spin spin;
void forget_search() {
  spin.reset();
}
VRAMTRACK_ON_FORK(forget_search);

template <class Function>
void find(Function& into, const char* name) {
  into = reinterpret_cast<Function>(find_function("libOpenCL", name));
}

/// The functions of libOpenCL. If a process has several, any of them will do: each calls the driver through the object.
const Next& next() {
  const std::uint64_t now = unloaded_objects() + 1;
  if (found_at.load(std::memory_order_acquire) == now) return functions;
  watch_forks();
  const Locked locked(spin);
  find(functions.clCreateBuffer, "clCreateBuffer");
  find(functions.clCreateBufferWithProperties, "clCreateBufferWithProperties");
  find(functions.clCreateImage, "clCreateImage");
  find(functions.clCreateImageWithProperties, "clCreateImageWithProperties");
  find(functions.clCreateImage2D, "clCreateImage2D");
  find(functions.clCreateImage3D, "clCreateImage3D");
  find(functions.clCreatePipe, "clCreatePipe");
  find(functions.clCreateSubBuffer, "clCreateSubBuffer");
  find(functions.clRetainMemObject, "clRetainMemObject");
  find(functions.clReleaseMemObject, "clReleaseMemObject");
  find(functions.clSVMAlloc, "clSVMAlloc");
  find(functions.clSVMFree, "clSVMFree");
  find(functions.clEnqueueSVMFree, "clEnqueueSVMFree");
  find(functions.clGetMemObjectInfo, "clGetMemObjectInfo");
  find(functions.clGetContextInfo, "clGetContextInfo");
  find(functions.clGetDeviceInfo, "clGetDeviceInfo");
  if (functions.clCreateBuffer != nullptr) found_at.store(now, std::memory_order_release);
  return functions;
}

cl_mem not_there(cl_int* error) {
  if (error != nullptr) *error = CL_INVALID_OPERATION;
  return nullptr;
}

}  // namespace
}  // namespace vramtrack::probe::opencl

using vramtrack::probe::opencl::Next;
using vramtrack::probe::opencl::next;
using vramtrack::probe::opencl::not_there;
namespace opencl = vramtrack::probe::opencl;

PROBE_EXPORT cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void* host, cl_int* error) {
  const Next& real = next();
  if (real.clCreateBuffer == nullptr) return not_there(error);
  return opencl::create_buffer(real, context, flags, bytes, host, error);
}

PROBE_EXPORT cl_mem clCreateBufferWithProperties(cl_context context, const cl_mem_properties* properties,
                                                 cl_mem_flags flags, size_t bytes, void* host, cl_int* error) {
  const Next& real = next();
  if (real.clCreateBufferWithProperties == nullptr) return not_there(error);
  return opencl::create_buffer_with(real, context, properties, flags, bytes, host, error);
}

PROBE_EXPORT cl_mem clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                  const cl_image_desc* shape, void* host, cl_int* error) {
  const Next& real = next();
  if (real.clCreateImage == nullptr) return not_there(error);
  return opencl::create_image(real, context, flags, format, shape, host, error);
}

PROBE_EXPORT cl_mem clCreateImageWithProperties(cl_context context, const cl_mem_properties* properties,
                                                cl_mem_flags flags, const cl_image_format* format,
                                                const cl_image_desc* shape, void* host, cl_int* error) {
  const Next& real = next();
  if (real.clCreateImageWithProperties == nullptr) return not_there(error);
  return opencl::create_image_with(real, context, properties, flags, format, shape, host, error);
}

PROBE_EXPORT cl_mem clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                    size_t height, size_t row_bytes, void* host, cl_int* error) {
  const Next& real = next();
  if (real.clCreateImage2D == nullptr) return not_there(error);
  return opencl::create_image_2d(real, context, flags, format, width, height, row_bytes, host, error);
}

PROBE_EXPORT cl_mem clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                    size_t height, size_t depth, size_t row_bytes, size_t slice_bytes, void* host,
                                    cl_int* error) {
  const Next& real = next();
  if (real.clCreateImage3D == nullptr) return not_there(error);
  return opencl::create_image_3d(real, context, flags, format, width, height, depth, row_bytes, slice_bytes, host,
                                 error);
}

PROBE_EXPORT cl_mem clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet_bytes, cl_uint packets,
                                 const cl_pipe_properties* properties, cl_int* error) {
  const Next& real = next();
  if (real.clCreatePipe == nullptr) return not_there(error);
  return opencl::create_pipe(real, context, flags, packet_bytes, packets, properties, error);
}

PROBE_EXPORT cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* region,
                                      cl_int* error) {
  const Next& real = next();
  if (real.clCreateSubBuffer == nullptr) return not_there(error);
  return opencl::create_sub_buffer(real, buffer, flags, type, region, error);
}

PROBE_EXPORT cl_int clRetainMemObject(cl_mem object) {
  const Next& real = next();
  return real.clRetainMemObject == nullptr ? CL_INVALID_MEM_OBJECT : opencl::retain(real, object);
}

PROBE_EXPORT cl_int clReleaseMemObject(cl_mem object) {
  const Next& real = next();
  return real.clReleaseMemObject == nullptr ? CL_INVALID_MEM_OBJECT : opencl::release(real, object);
}

PROBE_EXPORT void* clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment) {
  const Next& real = next();
  return real.clSVMAlloc == nullptr ? nullptr : opencl::svm_alloc(real, context, flags, bytes, alignment);
}

PROBE_EXPORT void clSVMFree(cl_context context, void* memory) {
  const Next& real = next();
  if (real.clSVMFree != nullptr) opencl::svm_free(real, context, memory);
}

PROBE_EXPORT cl_int clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void** memory, opencl::SvmFreed freed,
                                     void* user, cl_uint waits, const cl_event* wait_for, cl_event* event) {
  const Next& real = next();
  if (real.clEnqueueSVMFree == nullptr) return CL_INVALID_OPERATION;
  return opencl::enqueue_svm_free(real, queue, count, memory, freed, user, waits, wait_for, event);
}

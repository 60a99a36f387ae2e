// The same hooks as a layer for OpenCL's loader (OPENCL_LAYERS), which also sees programs that open libOpenCL
// themselves. A call that came through opencl_api.cpp is then seen twice and recorded once.
#include <algorithm>
#include <cstring>

#include "probe/opencl.hpp"

namespace vramtrack::probe::opencl {
namespace {

Next below;  ///< the functions from the loader
Next ours;   ///< the same with our functions
constexpr cl_uint kEntries = sizeof(Next) / sizeof(void*);

cl_mem CL_API_CALL layer_create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void* host,
                                       cl_int* error) {
  return create_buffer(below, context, flags, bytes, host, error);
}
cl_mem CL_API_CALL layer_create_buffer_with(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                                            size_t bytes, void* host, cl_int* error) {
  return create_buffer_with(below, context, properties, flags, bytes, host, error);
}
cl_mem CL_API_CALL layer_create_image(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                      const cl_image_desc* shape, void* host, cl_int* error) {
  return create_image(below, context, flags, format, shape, host, error);
}
cl_mem CL_API_CALL layer_create_image_with(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                                           const cl_image_format* format, const cl_image_desc* shape, void* host,
                                           cl_int* error) {
  return create_image_with(below, context, properties, flags, format, shape, host, error);
}
cl_mem CL_API_CALL layer_create_image_2d(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                         size_t width, size_t height, size_t row_bytes, void* host, cl_int* error) {
  return create_image_2d(below, context, flags, format, width, height, row_bytes, host, error);
}
cl_mem CL_API_CALL layer_create_image_3d(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                         size_t width, size_t height, size_t depth, size_t row_bytes,
                                         size_t slice_bytes, void* host, cl_int* error) {
  return create_image_3d(below, context, flags, format, width, height, depth, row_bytes, slice_bytes, host, error);
}
cl_mem CL_API_CALL layer_create_pipe(cl_context context, cl_mem_flags flags, cl_uint packet_bytes, cl_uint packets,
                                     const cl_pipe_properties* properties, cl_int* error) {
  return create_pipe(below, context, flags, packet_bytes, packets, properties, error);
}
cl_mem CL_API_CALL layer_create_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                           const void* region, cl_int* error) {
  return create_sub_buffer(below, buffer, flags, type, region, error);
}
cl_int CL_API_CALL layer_retain(cl_mem object) {
  return retain(below, object);
}
cl_int CL_API_CALL layer_release(cl_mem object) {
  return release(below, object);
}
void* CL_API_CALL layer_svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment) {
  return svm_alloc(below, context, flags, bytes, alignment);
}
void CL_API_CALL layer_svm_free(cl_context context, void* memory) {
  svm_free(below, context, memory);
}
cl_int CL_API_CALL layer_enqueue_svm_free(cl_command_queue queue, cl_uint count, void** memory, SvmFreed freed,
                                          void* user, cl_uint waits, const cl_event* wait_for, cl_event* event) {
  return enqueue_svm_free(below, queue, count, memory, freed, user, waits, wait_for, event);
}

/// Does so only if the loader has the function: an older loader has a shorter table.
template <class Function>
void interpose(Function& entry, Function function) {
  if (entry != nullptr) entry = function;
}

}  // namespace
}  // namespace vramtrack::probe::opencl

extern "C" __attribute__((visibility("default"))) cl_int clGetLayerInfo(cl_layer_info what, size_t size, void* into,
                                                                        size_t* bytes) {
  constexpr char kName[] = "vramtrack probe";
  constexpr cl_layer_api_version kVersion = CL_LAYER_API_VERSION_100;
  const bool is_version = what == CL_LAYER_API_VERSION;
  if (!is_version && what != CL_LAYER_NAME) return CL_INVALID_VALUE;
  const size_t needed = is_version ? sizeof kVersion : sizeof kName;
  if (into != nullptr && size < needed) return CL_INVALID_VALUE;
  if (into != nullptr) std::memcpy(into, is_version ? static_cast<const void*>(&kVersion) : kName, needed);
  if (bytes != nullptr) *bytes = needed;
  return CL_SUCCESS;
}

extern "C" __attribute__((visibility("default"))) cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch* target,
                                                                     cl_uint* entries_given,
                                                                     const cl_icd_dispatch** given) {
  using namespace vramtrack::probe::opencl;
  if (target == nullptr || entries_given == nullptr || given == nullptr) return CL_INVALID_VALUE;
  std::memcpy(static_cast<void*>(&below), target, std::min(entries, kEntries) * sizeof(void*));
  ours = below;
  interpose(ours.clCreateBuffer, &layer_create_buffer);
  interpose(ours.clCreateBufferWithProperties, &layer_create_buffer_with);
  interpose(ours.clCreateImage, &layer_create_image);
  interpose(ours.clCreateImageWithProperties, &layer_create_image_with);
  interpose(ours.clCreateImage2D, &layer_create_image_2d);
  interpose(ours.clCreateImage3D, &layer_create_image_3d);
  interpose(ours.clCreatePipe, &layer_create_pipe);
  interpose(ours.clCreateSubBuffer, &layer_create_sub_buffer);
  interpose(ours.clRetainMemObject, &layer_retain);
  interpose(ours.clReleaseMemObject, &layer_release);
  interpose(ours.clSVMAlloc, &layer_svm_alloc);
  interpose(ours.clSVMFree, &layer_svm_free);
  interpose(ours.clEnqueueSVMFree, &layer_enqueue_svm_free);
  *entries_given = std::min(entries, kEntries);
  *given = &ours;
  return CL_SUCCESS;
}

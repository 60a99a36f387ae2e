// Tracks the memory of OpenCL's memory objects and their lifetimes. Called by the functions that replace OpenCL's
// (opencl_api.cpp) and by the layer that its loader loads (opencl_layer.cpp), each with the `next` function.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <cstddef>

namespace vramtrack::probe::opencl {

using Next = cl_icd_dispatch;

cl_mem create_buffer(const Next& next, cl_context context, cl_mem_flags flags, std::size_t bytes, void* host,
                     cl_int* error);
cl_mem create_buffer_with(const Next& next, cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                          std::size_t bytes, void* host, cl_int* error);
cl_mem create_image(const Next& next, cl_context context, cl_mem_flags flags, const cl_image_format* format,
                    const cl_image_desc* shape, void* host, cl_int* error);
cl_mem create_image_with(const Next& next, cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                         const cl_image_format* format, const cl_image_desc* shape, void* host, cl_int* error);
cl_mem create_image_2d(const Next& next, cl_context context, cl_mem_flags flags, const cl_image_format* format,
                       std::size_t width, std::size_t height, std::size_t row_bytes, void* host, cl_int* error);
cl_mem create_image_3d(const Next& next, cl_context context, cl_mem_flags flags, const cl_image_format* format,
                       std::size_t width, std::size_t height, std::size_t depth, std::size_t row_bytes,
                       std::size_t slice_bytes, void* host, cl_int* error);
cl_mem create_pipe(const Next& next, cl_context context, cl_mem_flags flags, cl_uint packet_bytes, cl_uint packets,
                   const cl_pipe_properties* properties, cl_int* error);
cl_mem create_sub_buffer(const Next& next, cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                         const void* region, cl_int* error);
cl_int retain(const Next& next, cl_mem object);
cl_int release(const Next& next, cl_mem object);
void* svm_alloc(const Next& next, cl_context context, cl_svm_mem_flags flags, std::size_t bytes, cl_uint alignment);
void svm_free(const Next& next, cl_context context, void* memory);
using SvmFreed = void(CL_CALLBACK*)(cl_command_queue, cl_uint, void**, void*);
cl_int enqueue_svm_free(const Next& next, cl_command_queue queue, cl_uint count, void** memory, SvmFreed freed,
                        void* user, cl_uint waits, const cl_event* wait_for, cl_event* event);

}  // namespace vramtrack::probe::opencl

#include "probe/opencl.hpp"

#include <algorithm>

#include "probe/image_bytes.hpp"
#include "probe/opencl_device.hpp"
#include "probe/recorder.hpp"
#include "probe/table.hpp"

namespace vramtrack::probe::opencl {
namespace {

/// A memory object lives until it has been released as often as it was created and retained, and no sub-buffer or image
/// within it is alive.
struct Object {
  std::uint32_t references = 1;
  cl_mem parent = nullptr;  ///< the parent that owns the memory; it owns none
};
Table<Object> objects;
void forget_objects() {
  objects.reset();
}
VRAMTRACK_ON_FORK(forget_objects);

/// The object handled by this thread's outer hook: the layer below sees the same call again.
__attribute__((tls_model("initial-exec"))) thread_local const void* handled = nullptr;
class Handling {
 public:
  explicit Handling(const void* object) : before_(handled) { handled = object; }
  ~Handling() { handled = before_; }
  Handling(const Handling&) = delete;
  Handling& operator=(const Handling&) = delete;

 private:
  const void* before_;
};

bool is_out_of_memory(cl_int error) {
  return error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES || error == CL_OUT_OF_HOST_MEMORY;
}

bool is_host_call(Call call) {
  return call == Call::cl_create_buffer_host || call == Call::cl_create_image_host;
}

void set_error(cl_int* into, cl_int error) {
  if (into != nullptr) *into = error;
}

/// `create(cl_int*)` creates an object that owns at most `bytes`; its actual size is queried unless `is_exact`.
template <class Create>
cl_mem create_object(const Next& next, Call call, cl_context context, std::uint64_t bytes, bool is_exact, cl_int* error,
                     Create create) {
  Hook hook(call);
  if (hook.passes()) return create(error);
  if (!hook.may_take(is_host_call(call) ? -1 : device_of(next, context), bytes)) {
    set_error(error, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    return nullptr;
  }
  cl_int result = CL_SUCCESS;
  cl_mem object = create(&result);
  set_error(error, result);
  if (object == nullptr) {
    hook.failed(is_out_of_memory(result));
    return nullptr;
  }
  std::size_t taken_bytes = 0;
  std::uint8_t flags = 0;
  if (!is_exact) {
    if (next.clGetMemObjectInfo(object, CL_MEM_SIZE, sizeof taken_bytes, &taken_bytes, nullptr) == CL_SUCCESS &&
        taken_bytes != 0)
      bytes = taken_bytes;
    else
      flags = kEstimated;
  }
  objects.put(key_of(nullptr, object), {1, nullptr});
  hook.took(reinterpret_cast<std::uint64_t>(object), bytes, flags);
  return object;
}

void add_reference(cl_mem object, int count) {
  objects.update(key_of(nullptr, object), [count](Object& known) {
    known.references = static_cast<std::uint32_t>(static_cast<int>(known.references) + count);
  });
}

/// Adds an object within `parent`, which lives at least as long.
cl_mem created_within(cl_mem object, cl_mem parent) {
  if (object == nullptr) return object;
  add_reference(parent, 1);
  objects.put(key_of(nullptr, object), {1, parent});
  return object;
}

template <class Create>
cl_mem create_within(cl_mem parent, Create create) {
  const Hook hook(Call::cl_create_buffer);  // informs the layer below that there is a hook
  return hook.passes() ? create() : created_within(create(), parent);
}

/// The size of an image's elements, used until the driver reports the actual size.
std::uint64_t bytes_of_image(const cl_image_format* format, const cl_image_desc* shape) {
  if (format == nullptr || shape == nullptr) return 0;
  return image_bytes({format->image_channel_order, format->image_channel_data_type}, {shape->image_type,
                                                                                      shape->image_width,
                                                                                      shape->image_height,
                                                                                      shape->image_depth,
                                                                                      shape->image_array_size,
                                                                                      {},
                                                                                      nullptr});
}

bool is_host(cl_mem_flags flags) {
  return (flags & CL_MEM_USE_HOST_PTR) != 0;
}
Call buffer_call(cl_mem_flags flags) {
  return is_host(flags) ? Call::cl_create_buffer_host : Call::cl_create_buffer;
}
Call image_call(cl_mem_flags flags) {
  return is_host(flags) ? Call::cl_create_image_host : Call::cl_create_image;
}

template <class Create>
cl_mem create_any_image(const Next& next, cl_context context, cl_mem_flags flags, const cl_image_format* format,
                        const cl_image_desc* shape, cl_int* error, Create create) {
  if (shape != nullptr && shape->mem_object != nullptr)
    return create_within(shape->mem_object, [&] { return create(error); });
  return create_object(next, image_call(flags), context, bytes_of_image(format, shape), false, error, create);
}

cl_image_desc shape_of(cl_mem_object_type type, std::size_t width, std::size_t height, std::size_t depth) {
  cl_image_desc shape{};
  shape.image_type = type;
  shape.image_width = width;
  shape.image_height = height;
  shape.image_depth = depth;
  return shape;
}

/// Call when an object within `parent` is gone; the parent may have been waiting for that.
void released_within(cl_mem parent) {
  while (parent != nullptr) {
    Object known;
    bool is_last = false;
    objects.update(key_of(nullptr, parent), [&](Object& object) {
      is_last = object.references <= 1;
      if (!is_last) --object.references;
    });
    if (!is_last || !objects.take(key_of(nullptr, parent), known)) return;
    gave_back(Level::driver, reinterpret_cast<std::uint64_t>(parent));
    parent = known.parent;
  }
}

}  // namespace

cl_mem create_buffer(const Next& next, cl_context context, cl_mem_flags flags, std::size_t bytes, void* host,
                     cl_int* error) {
  return create_object(next, buffer_call(flags), context, bytes, true, error,
                       [&](cl_int* result) { return next.clCreateBuffer(context, flags, bytes, host, result); });
}

cl_mem create_buffer_with(const Next& next, cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                          std::size_t bytes, void* host, cl_int* error) {
  return create_object(next, buffer_call(flags), context, bytes, true, error, [&](cl_int* result) {
    return next.clCreateBufferWithProperties(context, properties, flags, bytes, host, result);
  });
}

cl_mem create_image(const Next& next, cl_context context, cl_mem_flags flags, const cl_image_format* format,
                    const cl_image_desc* shape, void* host, cl_int* error) {
  return create_any_image(next, context, flags, format, shape, error, [&](cl_int* result) {
    return next.clCreateImage(context, flags, format, shape, host, result);
  });
}

cl_mem create_image_with(const Next& next, cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                         const cl_image_format* format, const cl_image_desc* shape, void* host, cl_int* error) {
  return create_any_image(next, context, flags, format, shape, error, [&](cl_int* result) {
    return next.clCreateImageWithProperties(context, properties, flags, format, shape, host, result);
  });
}

cl_mem create_image_2d(const Next& next, cl_context context, cl_mem_flags flags, const cl_image_format* format,
                       std::size_t width, std::size_t height, std::size_t row_bytes, void* host, cl_int* error) {
  const cl_image_desc shape = shape_of(CL_MEM_OBJECT_IMAGE2D, width, height, 1);
  return create_any_image(next, context, flags, format, &shape, error, [&](cl_int* result) {
    return next.clCreateImage2D(context, flags, format, width, height, row_bytes, host, result);
  });
}

cl_mem create_image_3d(const Next& next, cl_context context, cl_mem_flags flags, const cl_image_format* format,
                       std::size_t width, std::size_t height, std::size_t depth, std::size_t row_bytes,
                       std::size_t slice_bytes, void* host, cl_int* error) {
  const cl_image_desc shape = shape_of(CL_MEM_OBJECT_IMAGE3D, width, height, depth);
  return create_any_image(next, context, flags, format, &shape, error, [&](cl_int* result) {
    return next.clCreateImage3D(context, flags, format, width, height, depth, row_bytes, slice_bytes, host, result);
  });
}

cl_mem create_pipe(const Next& next, cl_context context, cl_mem_flags flags, cl_uint packet_bytes, cl_uint packets,
                   const cl_pipe_properties* properties, cl_int* error) {
  return create_object(
      next, Call::cl_create_pipe, context, std::uint64_t{packet_bytes} * packets, false, error,
      [&](cl_int* result) { return next.clCreatePipe(context, flags, packet_bytes, packets, properties, result); });
}

cl_mem create_sub_buffer(const Next& next, cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                         const void* region, cl_int* error) {
  return create_within(buffer, [&] { return next.clCreateSubBuffer(buffer, flags, type, region, error); });
}

cl_int retain(const Next& next, cl_mem object) {
  if (handled == object) return next.clRetainMemObject(object);
  const Handling handling(object);
  const cl_int result = next.clRetainMemObject(object);
  if (result == CL_SUCCESS) add_reference(object, 1);
  return result;
}

cl_int release(const Next& next, cl_mem object) {
  if (handled == object) return next.clReleaseMemObject(object);
  const Handling handling(object);
  Object known;
  bool is_last = false;
  const bool is_known = objects.update(key_of(nullptr, object), [&](Object& mine) {
    is_last = mine.references <= 1;
    if (!is_last) --mine.references;
  });
  if (!is_known) return next.clReleaseMemObject(object);
  Holding holding;
  if (is_last) {
    objects.take(key_of(nullptr, object), known);
    holding = gave_back(Level::driver, reinterpret_cast<std::uint64_t>(object));
  }
  const cl_int result = next.clReleaseMemObject(object);
  if (result == CL_SUCCESS) {
    if (is_last) released_within(known.parent);
  } else if (is_last) {
    objects.put(key_of(nullptr, object), known);
    holds_still(holding);
  } else {
    add_reference(object, 1);
  }
  return result;
}

void* svm_alloc(const Next& next, cl_context context, cl_svm_mem_flags flags, std::size_t bytes, cl_uint alignment) {
  Hook hook(Call::cl_svm_alloc);
  if (hook.passes()) return next.clSVMAlloc(context, flags, bytes, alignment);
  if (!hook.may_take(device_of(next, context), bytes)) return nullptr;
  void* memory = next.clSVMAlloc(context, flags, bytes, alignment);
  if (memory != nullptr)
    hook.took(reinterpret_cast<std::uint64_t>(memory), bytes);
  else
    hook.failed(false);  // OpenCL does not report the reason
  return memory;
}

void svm_free(const Next& next, cl_context context, void* memory) {
  gave_back(Level::driver, reinterpret_cast<std::uint64_t>(memory));
  next.clSVMFree(context, memory);
}

cl_int enqueue_svm_free(const Next& next, cl_command_queue queue, cl_uint count, void** memory, SvmFreed freed,
                        void* user, cl_uint waits, const cl_event* wait_for, cl_event* event) {
  const cl_int result = next.clEnqueueSVMFree(queue, count, memory, freed, user, waits, wait_for, event);
  // A program with its own callback calls clSVMFree itself.
  if (result == CL_SUCCESS && freed == nullptr && memory != nullptr)
    for (cl_uint i = 0; i < count; ++i) gave_back(Level::driver, reinterpret_cast<std::uint64_t>(memory[i]));
  return result;
}

}  // namespace vramtrack::probe::opencl

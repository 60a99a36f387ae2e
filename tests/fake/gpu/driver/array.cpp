// Arrays: memory that no address names.
#include <set>

#include "driver.hpp"

using namespace fake_gpu;

namespace {

/// CUDA_ARRAY_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR
struct Flat {
  std::size_t width, height;
  int format;
  unsigned channels;
};
struct Deep {
  std::size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
/// CUDA_ARRAY_MEMORY_REQUIREMENTS
struct Requirements {
  std::size_t bytes, alignment;
  unsigned reserved[4];
};

struct Array {
  int device = 0;
  std::uint64_t bytes = 0;
  bool tells_size = false;
  const Context* context = nullptr;
};

std::set<Array*>& arrays() {
  static auto& all = *new std::set<Array*>;
  return all;
}

/// Floats are 32 bits, everything else here is bytes.
std::uint64_t bytes_of(const Deep& shape) {
  constexpr int kFloat = 0x20;
  const auto at_least_one = [](std::size_t n) { return n == 0 ? 1 : n; };
  return shape.width * at_least_one(shape.height) * at_least_one(shape.depth) * shape.channels *
         (shape.format == kFloat ? 4U : 1U);
}

CUresult make(const char* call, Array** out, std::uint64_t bytes, bool tells_size) {
  if (current_context() == nullptr) return kInvalidContext;
  const int device = current_context()->device;
  const std::lock_guard<std::mutex> held(driver_mutex());
  const CUresult code = take(device, bytes, false);
  if (code == kOk) {
    *out = new Array{device, bytes, tells_size, current_context()};
    arrays().insert(*out);
  }
  trace(call, device, code == kOk ? reinterpret_cast<std::uint64_t>(*out) : 0, bytes, code);
  return code;
}

void drop(Array* array) {
  give_back(array->device, array->bytes, false);
  arrays().erase(array);
  delete array;
}

CUresult destroy(const char* call, Array* array) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  if (!arrays().contains(array)) return kInvalid;
  trace(call, array->device, reinterpret_cast<std::uint64_t>(array), array->bytes, kOk);
  drop(array);
  return kOk;
}

CUresult require(Requirements* out, Array* array) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  if (!arrays().contains(array) || !array->tells_size) return kInvalid;
  *out = {array->bytes, 512, {}};
  return kOk;
}

}  // namespace

void fake_gpu::free_arrays_of(const Context* context) {
  for (auto at = arrays().begin(); at != arrays().end();) {
    Array* array = *at++;
    if (array->context != context) continue;
    trace("context ends", array->device, reinterpret_cast<std::uint64_t>(array), array->bytes, kOk);
    drop(array);
  }
}

EXPORT CUresult cuArrayCreate_v2(Array** out, const Flat* shape) {
  return make("cuArrayCreate", out, bytes_of({shape->width, shape->height, 0, shape->format, shape->channels, 0}),
              false);
}
/// Pads each array, and reports by how much.
EXPORT CUresult cuArray3DCreate_v2(Array** out, const Deep* shape) {
  return make("cuArray3DCreate", out, (bytes_of(*shape) + kMib - 1) / kMib * kMib, true);
}
EXPORT CUresult cuArrayDestroy(Array* array) {
  return destroy("cuArrayDestroy", array);
}
EXPORT CUresult cuArrayGetMemoryRequirements(Requirements* out, Array* array, int device) {
  return require(out, array);
}
EXPORT CUresult cuMipmappedArrayCreate(Array** out, const Deep* shape, unsigned levels) {
  std::uint64_t bytes = 0;
  for (unsigned level = 0; level < levels; ++level)
    bytes += bytes_of(
        {shape->width >> level, shape->height >> level, shape->depth >> level, shape->format, shape->channels, 0});
  return make("cuMipmappedArrayCreate", out, bytes, false);
}
EXPORT CUresult cuMipmappedArrayDestroy(Array* array) {
  return destroy("cuMipmappedArrayDestroy", array);
}
EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(Requirements* out, Array* array, int device) {
  return require(out, array);
}

// HIP's arrays. HIP does not report the size of an array, so it is computed from its elements.
#include <algorithm>

#include "probe/hip.hpp"

namespace vramtrack::probe::hip {
namespace {

std::uint64_t texels(std::size_t width, std::size_t height, std::size_t depth) {
  return std::uint64_t{width} * std::max<std::size_t>(height, 1) * std::max<std::size_t>(depth, 1);
}

std::uint64_t bytes_of(const ChannelFormat* format) {
  return format == nullptr ? 0 : static_cast<std::uint64_t>(format->x + format->y + format->z + format->w) / 8;
}

/// HIP_AD_FORMAT_*: 1 and 8 have 8 bits, 2, 9 and 0x10 have 16, 3, 10 and 0x20 have 32.
std::uint64_t bytes_of(unsigned format, unsigned channels) {
  const unsigned bytes = format == 1 || format == 8 ? 1 : format == 2 || format == 9 || format == 0x10 ? 2 : 4;
  return std::uint64_t{bytes} * channels;
}

template <class Function>
Error take_array(std::uint64_t bytes, Array* into, Function function) {
  return take(
      Call::hip_array_create, current_device(), bytes, into, kEstimated, [bytes] { return bytes; }, function);
}

/// The size of all levels: each has a quarter (an eighth) of the previous one.
std::uint64_t with_levels(std::uint64_t texel_bytes, Extent extent, unsigned levels) {
  std::uint64_t bytes = 0;
  for (unsigned level = 0; level < std::clamp(levels, 1U, 32U); ++level)
    bytes += texel_bytes *
             texels(std::max<std::size_t>(extent.width >> level, 1), extent.height >> level, extent.depth >> level);
  return bytes;
}

}  // namespace

// clang-format off: one call, one paragraph

VRAMTRACK_HIP(hipMallocArray,
              (Array * into, const ChannelFormat* format, std::size_t width, std::size_t height, unsigned flags),
              return take_array(texels(width, height, 1) * bytes_of(format), into,
                                [&] { return real(into, format, width, height, flags); });)

VRAMTRACK_HIP(hipMalloc3DArray, (Array * into, const ChannelFormat* format, Extent extent, unsigned flags),
              return take_array(texels(extent.width, extent.height, extent.depth) * bytes_of(format), into,
                                [&] { return real(into, format, extent, flags); });)

VRAMTRACK_HIP(hipArrayCreate, (Array * into, const ArrayDescriptor* shape),
              const std::uint64_t bytes = shape == nullptr ? 0
                                                           : texels(shape->width, shape->height, 1) *
                                                                 bytes_of(shape->format, shape->channels);
              return take_array(bytes, into, [&] { return real(into, shape); });)

VRAMTRACK_HIP(hipArray3DCreate, (Array * into, const Array3DDescriptor* shape),
              const std::uint64_t bytes = shape == nullptr ? 0
                                                           : texels(shape->width, shape->height, shape->depth) *
                                                                 bytes_of(shape->format, shape->channels);
              return take_array(bytes, into, [&] { return real(into, shape); });)

VRAMTRACK_HIP(hipMallocMipmappedArray,
              (Array * into, const ChannelFormat* format, Extent extent, unsigned levels, unsigned flags),
              return take_array(with_levels(bytes_of(format), extent, levels), into,
                                [&] { return real(into, format, extent, levels, flags); });)

VRAMTRACK_HIP(hipMipmappedArrayCreate, (Array * into, Array3DDescriptor* shape, unsigned levels),
              const std::uint64_t bytes = shape == nullptr
                                              ? 0
                                              : with_levels(bytes_of(shape->format, shape->channels),
                                                            {shape->width, shape->height, shape->depth}, levels);
              return take_array(bytes, into, [&] { return real(into, shape, levels); });)

VRAMTRACK_HIP(hipFreeArray, (Array array), return give(array, [&] { return real(array); });)

VRAMTRACK_HIP(hipArrayDestroy, (Array array), return give(array, [&] { return real(array); });)

VRAMTRACK_HIP(hipFreeMipmappedArray, (Array array), return give(array, [&] { return real(array); });)

VRAMTRACK_HIP(hipMipmappedArrayDestroy, (Array array), return give(array, [&] { return real(array); });)

// clang-format on

}  // namespace vramtrack::probe::hip

// Computes the memory of an array from its shape: a lower bound, because the driver adds padding.
#pragma once

#include <cstddef>
#include <cstdint>

/// CUDA_ARRAY_DESCRIPTOR
struct ArrayShape {
  std::size_t width, height;
  int format;
  unsigned channels;
};
/// CUDA_ARRAY3D_DESCRIPTOR
struct ArrayShape3d {
  std::size_t width, height, depth;
  int format;
  unsigned channels, flags;
};

namespace vramtrack::probe::cuda {

/// Bits per element with `channels` channels.
constexpr std::uint64_t element_bits(int format, unsigned channels) {
  if (format >= 0x91 && format <= 0x9e) {  // BC1 to BC7: 8 or 16 bytes per block of 16 elements
    const bool is_half = format == 0x91 || format == 0x92 || format == 0x97 || format == 0x98;
    return is_half ? 4 : 8;
  }
  if (format >= 0xc0 && format <= 0xcb) {  // UNORM, SNORM: 8 and 16 bits, with 1, 2 and 4 channels
    const int at = (format - 0xc0) % 6;
    return (at < 3 ? 8ULL : 16ULL) << static_cast<unsigned>(at % 3);
  }
  switch (format) {
    case 0x01:  // 8 bits
    case 0x08:
      return 8ULL * channels;
    case 0xb0:  // NV12: a plane, and half of one
      return 12;
    case 0x02:  // 16 bits
    case 0x09:
    case 0x10:
      return 16ULL * channels;
    default:
      return 32ULL * channels;
  }
}

/// The bytes of the first `levels` levels, each half of the previous one in each direction. 0: memory is bound to it
/// later (sparse, or deferred), or there is no shape.
constexpr std::uint64_t array_bytes(const ArrayShape3d* shape, unsigned levels) {
  constexpr unsigned kLayered = 0x1, kCube = 0x4, kSparse = 0x40, kDeferred = 0x80;
  if (shape == nullptr || (shape->flags & (kSparse | kDeferred)) != 0) return 0;
  const bool has_layers = (shape->flags & (kLayered | kCube)) != 0;
  const auto at_least_one = [](std::uint64_t n) { return n == 0 ? 1 : n; };
  std::uint64_t bits = 0;
  for (unsigned level = 0; level < levels && level < 64; ++level) {
    const std::uint64_t width = at_least_one(shape->width >> level), height = at_least_one(shape->height >> level);
    const std::uint64_t depth = at_least_one(has_layers ? shape->depth : shape->depth >> level);
    bits += width * height * depth * element_bits(shape->format, shape->channels);
  }
  return (bits + 7) / 8;
}

constexpr std::uint64_t array_bytes(const ArrayShape* shape) {
  if (shape == nullptr) return 0;
  const ArrayShape3d flat{shape->width, shape->height, 0, shape->format, shape->channels, 0};
  return array_bytes(&flat, 1);
}

}  // namespace vramtrack::probe::cuda

// Computes the memory of an OpenCL image from its shape: a lower bound, because the driver adds padding. Needs no
// OpenCL headers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace vramtrack::probe {

/// cl_image_format
struct ImageFormat {
  std::uint32_t order, type;
};
/// cl_image_desc
struct ImageShape {
  std::uint32_t type;
  std::size_t width, height, depth, layers;
  std::uint64_t pitches_and_samples[3];
  const void* parent;  ///< the buffer that provides its memory
};

constexpr std::uint64_t element_bytes(const ImageFormat& format) {
  std::uint64_t channels = 4;
  switch (format.order) {
    case 0x10b0:  // CL_R
    case 0x10b1:  // CL_A
    case 0x10b8:  // CL_INTENSITY
    case 0x10b9:  // CL_LUMINANCE
    case 0x10bd:  // CL_DEPTH
      channels = 1;
      break;
    case 0x10b2:  // CL_RG
    case 0x10b3:  // CL_RA
    case 0x10ba:  // CL_Rx
      channels = 2;
      break;
    case 0x10b4:  // CL_RGB
    case 0x10bb:  // CL_RGx
    case 0x10bf:  // CL_sRGB
      channels = 3;
      break;
    default:
      break;
  }
  switch (format.type) {
    case 0x10d0:  // 8 bits
    case 0x10d2:
    case 0x10d7:
    case 0x10da:
      return channels;
    case 0x10d9:  // 32 bits
    case 0x10dc:
    case 0x10de:
      return channels * 4;
    case 0x10d4:  // CL_UNORM_SHORT_565
    case 0x10d5:  // CL_UNORM_SHORT_555
      return 2;
    case 0x10d6:  // CL_UNORM_INT_101010
    case 0x10e0:  // CL_UNORM_INT_101010_2
      return 4;
    default:
      return channels * 2;
  }
}

constexpr std::uint64_t image_bytes(const ImageFormat& format, const ImageShape& shape) {
  const auto at_least_1 = [](std::size_t n) { return static_cast<std::uint64_t>(std::max<std::size_t>(n, 1)); };
  const bool is_1d = shape.type == 0x10f4, is_1d_array = shape.type == 0x10f5;
  const bool is_2d_array = shape.type == 0x10f3, is_3d = shape.type == 0x10f2;
  return element_bytes(format) * at_least_1(shape.width) * (is_1d || is_1d_array ? 1 : at_least_1(shape.height)) *
         (is_3d ? at_least_1(shape.depth) : 1) * (is_1d_array || is_2d_array ? at_least_1(shape.layers) : 1);
}

}  // namespace vramtrack::probe

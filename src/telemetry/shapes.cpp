#include "telemetry/shapes.hpp"

#include <algorithm>
#include <cstring>

#include "probe/cuda/array_bytes.hpp"
#include "probe/image_bytes.hpp"

namespace vramtrack::telemetry {
namespace {

template <class Shape>
Shape read(const telemetry_stack_event& event) {
  static_assert(sizeof(Shape) < sizeof event.shape);
  Shape shape{};
  std::memcpy(&shape, event.shape, sizeof shape);
  return shape;
}

}  // namespace

std::uint64_t bytes_of(const telemetry_stack_event& event) {
  switch (event.head.result) {
    case TELEMETRY_ARRAY: {
      const auto shape = read<ArrayShape>(event);
      return probe::cuda::array_bytes(&shape);
    }
    case TELEMETRY_ARRAY_3D: {
      const auto shape = read<ArrayShape3d>(event);
      return probe::cuda::array_bytes(&shape,
                                      static_cast<unsigned>(std::clamp<std::uint64_t>(event.head.bytes, 1, 64)));
    }
    case TELEMETRY_IMAGE: {
      probe::ImageFormat format;
      std::memcpy(&format, &event.shape[TELEMETRY_SHAPE_WORDS - 1], sizeof format);
      const auto shape = read<probe::ImageShape>(event);
      return shape.parent != 0 ? 0 : probe::image_bytes(format, shape);
    }
    default:
      return event.head.bytes;
  }
}

}  // namespace vramtrack::telemetry

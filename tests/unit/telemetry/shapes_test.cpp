#include "telemetry/shapes.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "probe/cuda/array_bytes.hpp"
#include "probe/image_bytes.hpp"

namespace vramtrack::telemetry {
namespace {

template <class Shape>
std::uint64_t bytes(telemetry_shape kind, const Shape& shape, std::uint64_t size = 0, probe::ImageFormat format = {}) {
  const auto event = std::make_unique<telemetry_stack_event>();
  event->head.result = kind;
  event->head.bytes = size;
  std::memcpy(event->shape, &shape, sizeof shape);
  std::memcpy(&event->shape[TELEMETRY_SHAPE_WORDS - 1], &format, sizeof format);
  return bytes_of(*event);
}

constexpr int kFloat = 0x20;
constexpr probe::ImageFormat kRgba8 = {0x10b5, 0x10d2};

TEST(Shapes, AFunctionThatIsToldASizeHasThat) {
  EXPECT_EQ(bytes(TELEMETRY_NO_SHAPE, 0, 4096), 4096U);
}

TEST(Shapes, ArraysHaveTheirElements) {
  EXPECT_EQ(bytes(TELEMETRY_ARRAY, ArrayShape{100, 10, kFloat, 2}), 8000U);
  EXPECT_EQ(bytes(TELEMETRY_ARRAY, ArrayShape{100, 0, kFloat, 1}), 400U) << "of one dimension";
  EXPECT_EQ(bytes(TELEMETRY_ARRAY_3D, ArrayShape3d{10, 10, 10, kFloat, 1, 0}), 4000U);
  EXPECT_EQ(bytes(TELEMETRY_ARRAY_3D, ArrayShape3d{8, 8, 0, kFloat, 1, 0}, 2), 256U + 64U) << "two levels";
  EXPECT_EQ(bytes(TELEMETRY_ARRAY_3D, ArrayShape3d{8, 8, 8, kFloat, 1, 0x40}), 0U) << "sparse: bound later";
}

TEST(Shapes, ImagesHaveTheirElementsUnlessTheyLieInAnother) {
  probe::ImageShape image{0x10f1, 1024, 512, 0, 0, {}, nullptr};
  EXPECT_EQ(bytes(TELEMETRY_IMAGE, image, 0, kRgba8), 2U << 20U);
  image.type = 0x10f2;
  image.depth = 4;
  EXPECT_EQ(bytes(TELEMETRY_IMAGE, image, 0, kRgba8), 8U << 20U);
  image.type = 0x10f3;
  image.layers = 3;
  EXPECT_EQ(bytes(TELEMETRY_IMAGE, image, 0, kRgba8), 6U << 20U);
  image.parent = &image;
  EXPECT_EQ(bytes(TELEMETRY_IMAGE, image, 0, kRgba8), 0U);
}

}  // namespace
}  // namespace vramtrack::telemetry

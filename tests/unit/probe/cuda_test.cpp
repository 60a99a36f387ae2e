// Which hook replaces an address from the driver's resolver, and how much memory an array takes.
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>

#include "probe/cuda/array_bytes.hpp"
#include "probe/cuda/forms.hpp"

namespace vramtrack::probe::cuda {
namespace {

constexpr Form kForms[] = {{"cuMemAllocAsync", 11020, false},
                           {"cuMemAllocAsync", 11020, true},
                           {"cuIpcOpen", 4010, false},
                           {"cuIpcOpen", 11000, false}};

/// The number of the form, or -1; `given`: the forms that the driver's answer has.
int form(const char* name, int version, std::uint64_t flags, std::initializer_list<std::size_t> given) {
  const std::size_t found = form_of(kForms, std::size(kForms), name, version, flags, [&](std::size_t i) {
    return std::find(given.begin(), given.end(), i) != given.end();
  });
  return found == std::size(kForms) ? -1 : static_cast<int>(found);
}

TEST(FormOf, IsTheNewestThatTheProgramMayHave) {
  EXPECT_EQ(form("cuIpcOpen", 4010, 0, {2, 3}), 2);
  EXPECT_EQ(form("cuIpcOpen", 10020, 0, {2, 3}), 2);
  EXPECT_EQ(form("cuIpcOpen", 11000, 0, {2, 3}), 3);
  EXPECT_EQ(form("cuIpcOpen", 13000, 0, {2, 3}), 3);
  EXPECT_EQ(form("cuIpcOpen", 4000, 0, {2, 3}), -1);
}

TEST(FormOf, IsWhatTheDriverGave) {
  EXPECT_EQ(form("cuIpcOpen", 13000, 0, {2}), 2) << "an older driver";
  EXPECT_EQ(form("cuIpcOpen", 14000, 0, {}), -1) << "a newer form, with other arguments perhaps";
  EXPECT_EQ(form("cuMemFree", 13000, 0, {0, 1, 2, 3}), -1);
}

TEST(FormOf, KnowsThreadsStreams) {
  EXPECT_EQ(form("cuMemAllocAsync", 12000, 0, {0, 1}), 0);
  EXPECT_EQ(form("cuMemAllocAsync", 12000, 1, {0, 1}), 0) << "the legacy stream, by name";
  EXPECT_EQ(form("cuMemAllocAsync", 12000, kPerThreadStream, {0, 1}), 1);
  EXPECT_EQ(form("cuIpcOpen", 12000, kPerThreadStream, {3}), 3);
}

TEST(ArrayBytes, AreThoseOfTheElements) {
  constexpr int kByte = 0x01, kHalf = 0x10, kFloat = 0x20, kBc1 = 0x91, kBc7 = 0x9d, kUnorm16x2 = 0xc4;
  const auto bytes = [](std::size_t width, std::size_t height, std::size_t depth, int format, unsigned channels,
                        unsigned flags = 0, unsigned levels = 1) {
    const ArrayShape3d shape{width, height, depth, format, channels, flags};
    return array_bytes(&shape, levels);
  };
  EXPECT_EQ(bytes(100, 0, 0, kByte, 1), 100U);
  EXPECT_EQ(bytes(100, 50, 0, kHalf, 2), 20'000U);
  EXPECT_EQ(bytes(10, 10, 10, kFloat, 4), 16'000U);
  EXPECT_EQ(bytes(64, 64, 0, kBc1, 4), 2048U);
  EXPECT_EQ(bytes(64, 64, 0, kBc7, 4), 4096U);
  EXPECT_EQ(bytes(64, 64, 0, kUnorm16x2, 2), 16'384U);
  EXPECT_EQ(bytes(8, 8, 0, kByte, 1, 0, 4), 64U + 16 + 4 + 1);
  EXPECT_EQ(bytes(8, 8, 6, kByte, 1, 0x4, 2), 6U * 64 + 6 * 16) << "a cube keeps its six faces";
  EXPECT_EQ(bytes(4, 2, 0, kByte, 1, 0, 20), 8U + 2 + 18) << "levels below one element";
  EXPECT_EQ(bytes(100, 100, 0, kFloat, 1, 0x40), 0U) << "sparse: memory is mapped later";
  EXPECT_EQ(array_bytes(static_cast<const ArrayShape*>(nullptr)), 0U);
}

}  // namespace
}  // namespace vramtrack::probe::cuda

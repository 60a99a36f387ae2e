#include "core/percent.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(Percent, WhatIsEncodedIsDecoded) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(percent_encoded("a b/c~"), "a%20b%2Fc~");
  EXPECT_EQ(percent_decoded(percent_encoded(all)), all);
}

TEST(Percent, WhatIsNoEscapeStays) {
  EXPECT_EQ(percent_decoded("100%, %4, %zz, %-1, a+b, %"), "100%, %4, %zz, %-1, a+b, %");
  EXPECT_EQ(percent_decoded("%41%4"), "A%4");
}

}  // namespace
}  // namespace vramtrack

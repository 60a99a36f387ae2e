#include "core/number_text.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace vramtrack {
namespace {

TEST(NumberText, AllOfTheTextIsTheNumber) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<std::uint64_t>("ff", 16), 255U);
  EXPECT_EQ(parse_number<double>("1.5e3"), 1500);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x"}) EXPECT_EQ(parse_number<int>(text), std::nullopt) << text;
}

TEST(NumberText, WhatDoesNotFitIsNoNumber) {
  EXPECT_EQ(parse_number<std::uint8_t>("256"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1e999"), std::nullopt);
}

}  // namespace
}  // namespace vramtrack

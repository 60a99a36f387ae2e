#include "core/json_text.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(JsonText, WhatWouldEndOrSteerIsEscaped) {
  std::string out = "x";
  append_json_string(out, "a\"b\\c\nd\te\rf\x1b[m\xff");
  EXPECT_EQ(out, "x\"a\\\"b\\\\c\\nd\\te?f?[m\xff\"");
}

}  // namespace
}  // namespace vramtrack

#include "core/markup.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(Markup, WhatMeansSomethingIsNamed) {
  EXPECT_EQ(escape_markup("<a href=\"x\" b='y'>&</a>"), "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;&lt;/a&gt;");
  EXPECT_EQ(escape_markup("&lt;"), "&amp;lt;");
}

TEST(Markup, ControlCharactersAreReplacedAndTheRestStays) {
  EXPECT_EQ(escape_markup(std::string_view("a\0b\x1b[1m\n\tc", 10)), "a?b?[1m\n\tc");
  EXPECT_EQ(escape_markup("größe \xff"), "größe \xff");
  EXPECT_EQ(escape_markup(""), "");
}

}  // namespace
}  // namespace vramtrack

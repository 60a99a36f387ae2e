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
  EXPECT_EQ(escape_markup("größe \xff"), "größe \ufffd");
  EXPECT_EQ(escape_markup(""), "");
}

TEST(Markup, MarkdownMakesNoLinkMentionOrTable) {
  const auto markdown = [](std::string_view text) { return escape_markup(text, Markup::markdown); };
  EXPECT_EQ(markdown("[a](b) | `c` *d* #1 ~e~ !f $g {h} i_j \\"),
            "\\[a\\](b) \\| \\`c\\` \\*d\\* \\#1 \\~e\\~ \\!f \\$g \\{h\\} i\\_j \\\\");
  EXPECT_EQ(markdown("<b> & @team"), "&lt;b&gt; &amp; &#64;team");
  EXPECT_EQ(markdown("http://www.example.org/a.b"), "http:&#47;/www&#46;example.org/a.b");
  EXPECT_EQ(markdown("two\r\nlines"), "two lines");
}

TEST(Markup, SlackNamesThreeCharactersOnly) {
  EXPECT_EQ(escape_markup("<!channel> & \"it's\" *bold*", Markup::slack), "&lt;!channel&gt; &amp; \"it's\" *bold*");
}

}  // namespace
}  // namespace vramtrack

#include "store/lifetimes_text.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(LifetimesText, ReadsWhatItWrites) {
  const std::vector<SiteLifetimes> sites = {
      {"train.py:57 step", 1 << 30, 1024, 0, 2, {{300, 600, 3e8, 3e8}, {0, 60, 6e7, 6e7}}}, {"a; @b", 5, 1, 1, 0, {}}};
  EXPECT_EQ(lifetimes_text(sites),
            "1073741824 1024 0 2;300 600 300000000 300000000;0 60 60000000 60000000;@train.py:57 step\n5 1 1 0;@a; @b");
  const auto read = parse_lifetimes(lifetimes_text(sites));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, sites);
  EXPECT_TRUE(parse_lifetimes("")->empty());
}

TEST(LifetimesText, SaysWhatIsWrongWithALine) {
  for (const char* const text : {"x", "1 2 3;@a", "1 2 3 4;4 5;@a", "1 2 3 4;", "1 2 3 4;@a\n\n1", "1 2 3 -4;@a",
                                 "1 2 3 99999999999999999999;@a", "1 2 3 9007199254740994;@a"}) {
    const auto read = parse_lifetimes(text);
    if (!read) {
      EXPECT_TRUE(read.error().message.starts_with("lifetimes, line ")) << read.error().message;
    } else {
      ADD_FAILURE() << text;
    }
  }
}

}  // namespace
}  // namespace vramtrack

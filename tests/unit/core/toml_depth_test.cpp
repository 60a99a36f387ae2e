#include "core/toml_depth.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vramtrack {
namespace {

/// "a.a.a" with this many parts.
std::string key(std::uint32_t parts) {
  std::string out = "a";
  for (std::uint32_t i = 1; i < parts; ++i) out += ".a";
  return out;
}

/// The line that the error names; 0 if it names none.
int line_of(const std::string& toml) {
  const Status checked = check_key_depth(toml, "f");
  return checked ? 0 : std::stoi(checked.error().message.substr(2));
}

TEST(TomlDepth, KeysOfFilesAreFine) {
  EXPECT_TRUE(check_key_depth("", "f"));
  EXPECT_TRUE(check_key_depth("[a.b]\nc.d = 1.5\ne = [1.5, 2.5]\n", "f"));
  EXPECT_TRUE(check_key_depth(key(kMaxKeyParts) + " = 1\n", "f"));
}

TEST(TomlDepth, TooManyPartsAreRefusedWhereverAKeyMayBe) {
  const std::string deep = key(kMaxKeyParts + 1);
  EXPECT_EQ(line_of(deep + " = 1"), 1);
  EXPECT_EQ(line_of("x = 1\n[" + deep + "]\n"), 2);
  EXPECT_EQ(line_of("x = 1\n\n[[" + deep + "]]\n"), 3);
  EXPECT_EQ(line_of("x = {y = 1, " + deep + " = 2}"), 1);
  EXPECT_EQ(line_of("'b.c'" + deep.substr(1) + " = 1"), 1) << "a quoted part is one part";
}

TEST(TomlDepth, DotsOfStringsAndCommentsAreNone) {
  const std::string dots(200, '.');
  EXPECT_TRUE(check_key_depth("a = \"" + dots + "\"", "f"));
  EXPECT_TRUE(check_key_depth("a = '" + dots + "'", "f"));
  EXPECT_TRUE(check_key_depth("a = \"\\\"" + dots + "\"", "f"));
  EXPECT_TRUE(check_key_depth("a = \"\"\"\n\"" + dots + "\n\"\"\"\nb = '''" + dots + "'''", "f"));
  EXPECT_TRUE(check_key_depth("# " + dots + "\na = 1", "f"));
  EXPECT_EQ(line_of("a = \"\"\"\n\n\"\"\"\n" + key(100) + " = 1"), 4) << "lines in strings count";
}

TEST(TomlDepth, WhatIsNoTomlEnds) {
  for (const std::string& text : {std::string("\""), std::string("'''"), std::string("\"\\"), std::string("a = \"x\n")})
    EXPECT_TRUE(check_key_depth(text, "f")) << text;
}

}  // namespace
}  // namespace vramtrack

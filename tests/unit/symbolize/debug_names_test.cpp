#include "symbolize/debug_names.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdlib>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack::symbolize {
namespace {

/// A program in which main() calls outer(), with middle() inlined into it; the return address of the call in middle().
struct Built {
  TempFolder folder;
  std::string program;
  std::uint64_t return_offset = 0;

  explicit Built(const std::string& flags, const std::string& after = "true") : program(folder.path() + "/program") {
    std::ofstream(folder.path() + "/source.cpp") << "#include <cstdio>\n"                                       // 1
                                                    "namespace deep {\n"                                        // 2
                                                    "__attribute__((noinline)) void* where() {\n"               // 3
                                                    "  return __builtin_return_address(0);\n"                   // 4
                                                    "}\n"                                                       // 5
                                                    "inline __attribute__((always_inline)) void* middle() {\n"  // 6
                                                    "  void* at = where();\n"                                   // 7
                                                    "  asm volatile(\"\" : \"+r\"(at));\n"                      // 8
                                                    "  return at;\n"                                            // 9
                                                    "}\n"                                                       // 10
                                                    "__attribute__((noinline)) void* outer(int) {\n"            // 11
                                                    "  void* at = middle();\n"                                  // 12
                                                    "  asm volatile(\"\" : \"+r\"(at));\n"                      // 13
                                                    "  return at;\n"                                            // 14
                                                    "}\n"                                                       // 15
                                                    "}\n"                                                       // 16
                                                    "extern \"C\" char __executable_start;\n"                   // 17
                                                    "int main() {\n"                                            // 18
                                                    "  printf(\"%lu\\n\", (unsigned long)((char*)deep::outer(1) - "
                                                    "&__executable_start));\n"
                                                    "}\n";
    const std::string build =
        fmt::format("cd {} && c++ {} -O1 -fPIE -pie source.cpp -o program && {} && ./program > offset", folder.path(),
                    flags, after);
    if (std::system(build.c_str()) != 0) return;
    std::ifstream(folder.path() + "/offset") >> return_offset;
  }
};

TEST(DebugNames, InlinedFunctionsAndSourceLines) {
  const Built built("-g");
  ASSERT_GT(built.return_offset, 0U);
  DebugNames names;
  // The text segment of such a small program is at its file offset.
  const auto told = names.look_up(built.program, "", built.return_offset);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].function, "deep::middle()");
  EXPECT_TRUE(told[0].file.ends_with("/source.cpp")) << told[0].file;
  EXPECT_EQ(told[0].line, 7U);
  EXPECT_EQ(told[1].function, "deep::outer(int)");
  EXPECT_TRUE(told[1].file.ends_with("/source.cpp")) << told[1].file;
  EXPECT_EQ(told[1].line, 12U);
  EXPECT_TRUE(names.notes().empty());
}

/// Like programs written by Clang and Rust.
TEST(DebugNames, WithoutATableOfAddressesTheUnitsAreLookedThrough) {
  const Built built("-g", "objcopy --remove-section=.debug_aranges program");
  ASSERT_GT(built.return_offset, 0U);
  DebugNames names;
  const auto told = names.look_up(built.program, "", built.return_offset);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].function, "deep::middle()");
  EXPECT_EQ(told[0].line, 7U);
  EXPECT_EQ(told[1].line, 12U);
  // The program's start, which is in no unit.
  for (const auto& name : names.look_up(built.program, "", 0x40)) EXPECT_EQ(name.line, 0U);
}

TEST(DebugNames, WithoutDebugInformationTheSymbolIsTold) {
  const Built built("-g0");
  ASSERT_GT(built.return_offset, 0U);
  DebugNames names;
  const auto told = names.look_up(built.program, build_id_of(built.program), built.return_offset);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].function, "deep::outer(int)");
  EXPECT_EQ(told[0].line, 0U);
}

TEST(DebugNames, AnotherBuildIsNotUsed) {
  const Built built("-g");
  ASSERT_EQ(build_id_of(built.program).size(), 40U);
  DebugNames names;
  EXPECT_TRUE(names.look_up(built.program, std::string(40, '0'), built.return_offset).empty());
  EXPECT_TRUE(names.look_up(built.program, std::string(40, '0'), built.return_offset).empty());
  ASSERT_EQ(names.notes().size(), 1U);
  EXPECT_NE(names.notes()[0].find("has changed since the recording"), std::string::npos);
}

TEST(DebugNames, WhatIsNoProgramHasNoNames) {
  DebugNames names;
  EXPECT_TRUE(names.look_up("/nowhere", "", 100).empty());
  EXPECT_TRUE(names.look_up("/etc/passwd", "", 100).empty());
  EXPECT_EQ(build_id_of("/etc/passwd"), "");
  EXPECT_EQ(demangled("main"), "main");
  EXPECT_EQ(demangled("_ZN3foo3barEi"), "foo::bar(int)");
}

}  // namespace
}  // namespace vramtrack::symbolize

#include "run/elf_symbols.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace vramtrack::run {
namespace {

/// A library that every process has.
std::string the_c_library() {
  Dl_info where{};
  EXPECT_NE(::dladdr(reinterpret_cast<void*>(&::getpid), &where), 0);
  return where.dli_fname;
}

TEST(ElfSymbols, ListsWhatALibraryExports) {
  const auto file = ElfSymbols::read(the_c_library());
  ASSERT_TRUE(file) << file.error().message;
  const auto names = file->functions();
  EXPECT_EQ(std::ranges::count(names, "getpid"), 1);
  EXPECT_EQ(std::ranges::count(names, ""), 0);
}

TEST(ElfSymbols, WhatIsNoLibraryIsAnError) {
  EXPECT_NE(ElfSymbols::read("/nowhere/lib.so").error().message.find("cannot read /nowhere/lib.so"), std::string::npos);
  EXPECT_EQ(ElfSymbols::read("/proc").error().message, "/proc is not a 64-bit ELF file");
  EXPECT_EQ(ElfSymbols::read("/").error().message, "/ is not a 64-bit ELF file");
  EXPECT_EQ(ElfSymbols::parse("not a library", "a.so").error().message, "a.so is not a 64-bit ELF file");
  EXPECT_EQ(ElfSymbols::parse("", "a.so").error().message, "a.so is not a 64-bit ELF file");
}

TEST(ElfSymbols, DamageIsAnErrorOrFewerNames) {
  const std::string whole = ElfSymbols::read(the_c_library())->bytes();
  for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 300)
    if (auto cut = ElfSymbols::parse(whole.substr(0, length), "cut.so")) {
      EXPECT_LE(cut->functions().size(), whole.size());
      cut->rename({{"getpid", "getid"}});
    }
  // Damages each byte of the header and of the section table.
  const auto damaged = [&](std::size_t at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0xff);
    if (auto file = ElfSymbols::parse(std::move(bytes), "damaged.so")) {
      EXPECT_LE(file->functions().size(), whole.size());
      file->rename({{"getpid", "getid"}});
    }
  };
  for (std::size_t i = 0; i < sizeof(ElfW(Ehdr)); ++i) damaged(i);
  ElfW(Ehdr) header;
  whole.copy(reinterpret_cast<char*>(&header), sizeof header);
  const std::size_t sections = std::min<std::size_t>(whole.size() - header.e_shoff, 40 * sizeof(ElfW(Shdr)));
  for (std::size_t i = 0; i < sections; i += 3) damaged(header.e_shoff + i);
}

}  // namespace
}  // namespace vramtrack::run

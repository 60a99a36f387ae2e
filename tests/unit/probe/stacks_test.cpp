// A stack is written once, with the data for reading it, and has one number from then on.
#include "probe/stacks.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../temp_folder.hpp"
#include "paths.hpp"
#include "probe/modules.hpp"
#include "probe/recorder.hpp"
#include "probe/stacks_table.hpp"
#include "read_ring.hpp"

namespace vramtrack::probe {
namespace {

std::string folder_of_ring() {
  static TempFolder folder;
  if (getenv("VRAMTRACK_PROBE_DIR") == nullptr) setenv("VRAMTRACK_PROBE_DIR", folder.path().c_str(), 1);
  return getenv("VRAMTRACK_PROBE_DIR");
}

class Stacks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_of_ring();
    ASSERT_TRUE(is_recording());
    // Other tests in this program may have seen modules before there was a ring.
    forget_stacks();
  }
  void SetUp() override {
    folder_ = folder_of_ring();
    ASSERT_TRUE(is_recording());
  }
  /// Native addresses of a stack, innermost first.
  std::vector<std::uint64_t> frames(std::uint32_t number) const {
    std::map<std::uint64_t, std::uint64_t> by_index;
    for (const Slot& slot : only(read_ring(folder_), Record::frame))
      if (number_of(slot) == number && (flags_of(slot) & kPythonFrame) == 0)
        by_index[slot.a & 0xffff'ffffU] = slot.address;
    std::vector<std::uint64_t> addresses;
    for (const auto& [index, address] : by_index) addresses.push_back(address);
    return addresses;
  }
  std::string folder_;
};

__attribute__((noinline)) std::uint32_t captured() {
  const std::uint32_t number = capture_stack();
  asm volatile("");  // no tail call
  return number;
}

TEST_F(Stacks, OneNumberAStack) {
  std::uint32_t numbers[3];
  for (std::uint32_t& number : numbers) number = captured();
  EXPECT_NE(numbers[0], 0U);
  EXPECT_EQ(numbers[0], numbers[1]);
  EXPECT_EQ(numbers[0], numbers[2]);
  const std::size_t size = read_ring(folder_).size();
  const std::uint32_t another = captured();
  EXPECT_NE(another, numbers[0]) << "another line of this function";
  EXPECT_GT(read_ring(folder_).size(), size);
  EXPECT_EQ(stacks_without_room(), 0U);
}

TEST_F(Stacks, FramesAreWrittenWithTheirModules) {
  const std::vector<std::uint64_t> addresses = frames(captured());
  ASSERT_GT(addresses.size(), 5U);
  const auto ring = read_ring(folder_);
  for (const std::uint64_t address : addresses) {
    const auto modules = only(ring, Record::module);
    const auto of = std::find_if(modules.begin(), modules.end(), [&](const Slot& module) {
      return address >= module.address && address < module.address + module.bytes;
    });
    ASSERT_NE(of, modules.end());
    Dl_info info{};
    ASSERT_NE(dladdr(reinterpret_cast<void*>(address), &info), 0);
    // The address in the file: that of its segment, from the start of the mapping.
    EXPECT_EQ(address - of->address + of->a, address - reinterpret_cast<std::uint64_t>(info.dli_fbase));
    const auto texts = only(ring, Record::text);
    const auto path =
        std::find_if(texts.begin(), texts.end(), [&](const Slot& text) { return number_of(text) == number_of(*of); });
    ASSERT_NE(path, texts.end());
    EXPECT_EQ(std::memcmp(&path->address, "/", 1), 0);
  }
}

TEST_F(Stacks, AForkedChildWritesThemAgain) {
  const std::size_t count = frames(captured()).size();
  const pid_t child = fork();
  if (child == 0) {
    // Its ring is a new one, without the parent's records.
    bool is_right = is_recording();
    const std::uint32_t number = captured();
    is_right =
        is_right && number != 0 && frames(number).size() == count && !only(read_ring(folder_), Record::module).empty();
    _exit(is_right ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Stacks, ThreadsShareThem) {
  std::vector<std::uint32_t> numbers(8);
  std::vector<std::thread> threads;
  for (std::uint32_t& number : numbers)
    threads.emplace_back([&number] {
      for (int i = 0; i < 100; ++i) number = captured();
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::uint32_t number : numbers) EXPECT_EQ(number, numbers[0]);
  EXPECT_NE(numbers[0], 0U);
}

struct Plugin {
  explicit Plugin(int variant)
      : handle(dlopen((std::string(build_dir() + "/probe/libprobe_unwound_") + std::to_string(variant) + ".so").c_str(),
                      RTLD_NOW | RTLD_LOCAL)) {}
  ~Plugin() {
    if (handle != nullptr) dlclose(handle);
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  void* handle;
};

/// Two libraries alternate at one address: each stack keeps its frames, and the module that was mapped there at the
/// time.
TEST_F(Stacks, AnotherLibraryAtTheSameAddresses) {
#if !defined(__x86_64__)
  GTEST_SKIP();
#endif
  for (int round = 0; round < 8; ++round) {
    const Plugin plugin(1 + round % 2);
    ASSERT_NE(plugin.handle, nullptr);
    auto* deep = reinterpret_cast<int (*)(int, void (*)(void*), void*)>(dlsym(plugin.handle, "unwound_deep"));
    ASSERT_NE(deep, nullptr);
    struct Got {
      std::uint32_t number;
      std::vector<std::uint64_t> wanted;
    } got{};
    deep(
        5,
        [](void* with) {
          auto& into = *static_cast<Got*>(with);
          into.number = capture_stack();
          void* addresses[128];
          const int count = backtrace(addresses, 128);
          for (int i = 1; i < count; ++i) into.wanted.push_back(reinterpret_cast<std::uint64_t>(addresses[i]));
        },
        &got);
    ASSERT_NE(got.number, 0U);
    std::vector<std::uint64_t> seen = frames(got.number);
    ASSERT_FALSE(seen.empty());
    // The innermost frame is this function, at another line; a sanitizer has a frame of its own.
    seen.erase(seen.begin());
    got.wanted.erase(got.wanted.begin(), std::find(got.wanted.begin(), got.wanted.end(), seen.front()));
    EXPECT_EQ(seen, got.wanted) << round;
    // The last module record for its address names this library.
    Dl_info info{};
    ASSERT_NE(dladdr(reinterpret_cast<void*>(deep), &info), 0);
    const auto inside = std::find_if(seen.begin(), seen.end(), [&](std::uint64_t address) {
      Dl_info of{};
      return dladdr(reinterpret_cast<void*>(address), &of) != 0 && of.dli_fbase == info.dli_fbase;
    });
    ASSERT_NE(inside, seen.end());
    std::uint32_t path = 0;
    const auto ring = read_ring(folder_);
    for (const Slot& module : only(ring, Record::module))
      if (*inside >= module.address && *inside < module.address + module.bytes) path = number_of(module);
    std::string text;
    for (const Slot& slot : only(ring, Record::text))
      if (number_of(slot) == path) text.append(reinterpret_cast<const char*>(&slot.address), 16);
    text.resize(std::strlen(text.c_str()));
    EXPECT_EQ(text, info.dli_fname) << round;
  }
}

TEST(StackTables, NumbersEndWhereTheyAreFull) {
  Numbers<4> numbers;
  bool is_new = false;
  for (std::uint64_t key = 1; key <= 12; ++key) {
    const std::uint32_t number = numbers.number(key << 40U, 12, is_new);
    EXPECT_NE(number, 0U);
    EXPECT_TRUE(is_new);
    EXPECT_EQ(numbers.number(key << 40U, 12, is_new), number);
    EXPECT_TRUE(is_new) << "until it is written";
    numbers.is_written(number);
    EXPECT_EQ(numbers.number(key << 40U, 12, is_new), number);
    EXPECT_FALSE(is_new);
  }
  EXPECT_EQ(numbers.number(std::uint64_t{13} << 40U, 12, is_new), 0U);
  numbers.forget();
}

TEST(ProbeModules, LinesOfMaps) {
  Mapping mapping;
  ASSERT_TRUE(parse_mapping("7f12-7f34 r-xp 00001000 fe:1a 12345      /a b/libc.so (deleted)", mapping));
  EXPECT_EQ(mapping.begin, 0x7f12U);
  EXPECT_EQ(mapping.end, 0x7f34U);
  EXPECT_TRUE(mapping.is_readable);
  EXPECT_TRUE(mapping.is_executable);
  EXPECT_EQ(mapping.offset, 0x1000U);
  EXPECT_EQ(mapping.device, (std::uint64_t{0xfe} << 32U) + 0x1a);
  EXPECT_EQ(mapping.inode, 12345U);
  EXPECT_EQ(mapping.path, "/a b/libc.so (deleted)");
  ASSERT_TRUE(parse_mapping("1000-2000 ---p 00000000 00:00 0 ", mapping));
  EXPECT_FALSE(mapping.is_readable);
  EXPECT_EQ(mapping.path, "");
  for (const char* bad : {"", "-", "1000", "1000-2000", "1000-2000 r", "2000-1000 r-xp 0 0:0 0"})
    EXPECT_FALSE(parse_mapping(bad, mapping)) << bad;
}

TEST(ProbeModules, SymbolsOfALibrary) {
  const auto address = reinterpret_cast<std::uint64_t>(dlsym(RTLD_DEFAULT, "backtrace"));
  const std::uint32_t number = modules().find(address);
  ASSERT_NE(number, 0U);
  EXPECT_EQ(find_symbol(modules()[number], "backtrace"), address);
  EXPECT_EQ(find_symbol(modules()[number], "backtrac"), 0U);
  EXPECT_EQ(find_symbol(modules()[number], "no such symbol"), 0U);
  EXPECT_EQ(modules().find(8), 0U);
}

TEST(ProbeModules, MemoryThatIsGoneIsNoFault) {
  std::uint64_t word = 7;
  EXPECT_EQ(peek<std::uint64_t>(reinterpret_cast<std::uint64_t>(&word)), 7U);
  EXPECT_FALSE(read_memory(8, &word, sizeof word));
}

}  // namespace
}  // namespace vramtrack::probe

// The unwinder finds the same return addresses as those of glibc and libunwind, on frames of every kind.
#include "probe/unwind.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "paths.hpp"
#include "probe/modules.hpp"

#if defined(__SANITIZE_THREAD__)
#define VRAMTRACK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VRAMTRACK_TSAN 1
#endif
#endif

namespace vramtrack::probe {
namespace {

// ThreadSanitizer crashes in libunwind's cleanup of a thread, and reports a vector in a signal handler as an error.
#if defined(VRAMTRACK_TSAN)
constexpr bool kIsTsan = true;
#else
constexpr bool kIsTsan = false;
#endif

using Callback = void (*)(void*);
using Frames = int (*)(int, Callback, void*);

class Library {
 public:
  explicit Library(int variant)
      : handle_(
            dlopen((std::string(build_dir() + "/probe/libprobe_unwound_") + std::to_string(variant) + ".so").c_str(),
                   RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  [[nodiscard]] bool is_open() const { return handle_ != nullptr; }
  [[nodiscard]] Frames of(const char* name) const { return reinterpret_cast<Frames>(dlsym(handle_, name)); }

 private:
  void* handle_;
};

using Addresses = std::vector<std::uint64_t>;

/// The caller's stack, from the probe.
__attribute__((noinline)) Addresses ours() {
  NativeFrame frames[256];
  const std::size_t count = unwind(VRAMTRACK_CALLER_REGISTERS(), frames, 256);
  Addresses addresses;
  for (std::size_t i = 0; i < count; ++i) addresses.push_back(frames[i].address);
  return addresses;
}
/// The stack from the C library, which uses libgcc's unwinder.
Addresses theirs() {
  void* frames[256];
  const int count = backtrace(frames, 256);
  Addresses addresses;
  for (int i = 0; i < count; ++i) addresses.push_back(reinterpret_cast<std::uint64_t>(frames[i]));
  return addresses;
}

/// The stack from libunwind, if it is installed. It is not linked, because it exports backtrace() as well.
Addresses libunwinds() {
  static void* handle = kIsTsan ? nullptr : dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  static auto* unwind_all =
      reinterpret_cast<int (*)(void**, int)>(handle == nullptr ? nullptr : dlsym(handle, "unw_backtrace"));
  void* frames[256];
  const int count = unwind_all == nullptr ? 0 : unwind_all(frames, 256);
  Addresses addresses;
  for (int i = 0; i < count; ++i) addresses.push_back(reinterpret_cast<std::uint64_t>(frames[i]));
  return addresses;
}

std::string told(const Addresses& addresses) {
  std::string text;
  for (const std::uint64_t address : addresses) {
    Dl_info info{};
    text += dladdr(reinterpret_cast<void*>(address), &info) != 0 && info.dli_sname != nullptr ? info.dli_sname : "?";
    text += "+" + std::to_string(address - reinterpret_cast<std::uint64_t>(info.dli_saddr)) + " ";
  }
  return text;
}

struct Seen {
  bool is_libunwind_asked = true;
  int calls = 0;
  std::size_t fewest = SIZE_MAX;
  std::string wrong;
};

/// Compares from this function's caller on: the inner frames differ by unwinder, or belong to a sanitizer.
__attribute__((noinline)) void compare(void* with) {
  auto& seen = *static_cast<Seen*>(with);
  const Addresses mine = ours();
  const Addresses others = theirs();
  ++seen.calls;
  const Addresses a(mine.begin() + (mine.empty() ? 0 : 1), mine.end());
  const Addresses b(a.empty() ? others.begin() : std::find(others.begin(), others.end(), a.front()), others.end());
  seen.fewest = std::min(seen.fewest, a.size());
  if (a != b && seen.wrong.empty()) seen.wrong = told(a) + "\n" + told(b);
  if (!seen.is_libunwind_asked) return;
  // Its first frame is this function or the caller, by version; its last one may be address 0.
  Addresses c = libunwinds();
  while (!c.empty() && c.back() == 0) c.pop_back();
  if (c.empty()) return;
  if (c.size() < a.size() || !std::equal(a.begin(), a.end(), c.end() - static_cast<std::ptrdiff_t>(a.size())))
    if (seen.wrong.empty()) seen.wrong = told(a) + "\nlibunwind: " + told(c);
}

class Unwind : public testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "unwinds by frame pointers, which glibc's backtrace() does not";
#endif
    ASSERT_TRUE(library_.is_open()) << dlerror();
  }
  Seen run(const char* name, int depth) {
    Seen seen;
    result_ = library_.of(name)(depth, compare, &seen);
    return seen;
  }
  Library library_{1};
  int result_ = 0;
};

TEST_F(Unwind, FramesOfEveryKind) {
  for (const char* name : {"unwound_deep", "unwound_alloca", "unwound_aligned", "unwound_qsort", "unwound_function"})
    for (const int depth : {0, 1, 5, 60}) {
      const Seen seen = run(name, depth);
      EXPECT_GE(seen.calls, 1) << name;
      EXPECT_EQ(seen.wrong, "") << name << " " << depth;
    }
}

__attribute__((noinline)) int beneath(int levels, const std::function<void()>& then) {
  volatile char frame[24] = {};  // so that addresses differ from frame to frame
  if (levels == 0)
    then();
  else
    frame[levels % 24] = static_cast<char>(beneath(levels - 1, then));
  return frame[0];
}

/// While one lives, this process cannot open files.
class NoFiles {
 public:
  NoFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoFiles(const NoFiles&) = delete;
  NoFiles& operator=(const NoFiles&) = delete;

 private:
  rlimit before_{};
};

/// Not a local variable, because a sanitizer may keep those elsewhere.
__attribute__((noinline)) std::uint64_t own_frame() {
  return reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
}

/// The maps have two lines per thread: each of thousands of threads would read those of all.
TEST(OwnStack, AThreadFindsItWithoutTheMaps) {
  const std::uint64_t of_main = own_frame();
  ASSERT_TRUE(lies_in_own_stack(of_main));
  bool is_innermost = false, is_outermost = false, are_others = true;
  std::vector<int> heap(1);
  std::thread([&] {
    const NoFiles none;  // only from here on, because a sanitizer's check at the start of a thread needs files
    // A deeper frame is queried first.
    beneath(200, [&] { is_innermost = lies_in_own_stack(own_frame()); });
    is_outermost = lies_in_own_stack(own_frame());
    are_others = lies_in_own_stack(of_main) || lies_in_own_stack(reinterpret_cast<std::uint64_t>(heap.data())) ||
                 lies_in_own_stack(64);
  }).join();
  EXPECT_TRUE(is_innermost);
  EXPECT_TRUE(is_outermost);
  EXPECT_FALSE(are_others);
}

/// Walks continue from the previous one's result: from stacks that have much, little or nothing in common with it.
TEST_F(Unwind, WhateverItWalkedBefore) {
  std::mt19937 random(1);
  const char* const names[] = {"unwound_deep", "unwound_alloca", "unwound_aligned", "unwound_qsort",
                               "unwound_function"};
  for (int i = 0; i < 400; ++i) {
    const char* const name = names[random() % 5];
    const int depth = static_cast<int>(random() % 70);
    Seen seen;
    beneath(static_cast<int>(random() % 40), [&] { seen = run(name, depth); });
    ASSERT_EQ(seen.wrong, "") << i << ": " << name << " " << depth;
  }
}

__attribute__((noinline)) void between(Seen& seen) {
  compare(&seen);
  asm volatile("");  // no tail call
}

__attribute__((noinline)) void from_two_places(bool second, Seen& seen) {
  if (second) {
    between(seen);
    asm volatile("nop");
  } else {
    between(seen);
    asm volatile("nop; nop");
  }
}

/// Only the position of a call in the middle of the stack changes: all frames stay where they were.
TEST_F(Unwind, AnotherCallOfTheSameFunction) {
  Seen seen;
  for (int i = 0; i < 8; ++i) from_two_places(i % 3 == 0, seen);
  EXPECT_EQ(seen.calls, 8);
  EXPECT_EQ(seen.wrong, "");
}

TEST_F(Unwind, ReachesTheOutermostFrame) {
  const Addresses addresses = ours();
  ASSERT_FALSE(addresses.empty());
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(addresses.back()), &info), 0);
  EXPECT_STREQ(info.dli_sname == nullptr ? "_start" : info.dli_sname, "_start");
}

TEST_F(Unwind, WhileAnExceptionPasses) {
  const Seen seen = run("unwound_throw", 5);
  EXPECT_EQ(seen.calls, 7);
  EXPECT_EQ(seen.wrong, "");
  EXPECT_EQ(result_, 7) << "and it still arrives";
}

TEST_F(Unwind, ACallThatIsAFunctionsLastInstruction) {
  const Seen seen = run("unwound_noreturn_caught", 0);
  EXPECT_EQ(seen.wrong, "");
  EXPECT_EQ(result_, 7);
}

TEST_F(Unwind, StopsAtTheMost) {
  NativeFrame frames[8];
  EXPECT_LE(unwind(VRAMTRACK_CALLER_REGISTERS(), frames, 8), 8U);
}

Seen in_handler;
/// In the handler, both find the same, from the interrupted function outwards.
void on_signal(int) {
  compare(&in_handler);
}

class Handler {
 public:
  Handler(int signal, int flags) : signal_(signal) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = flags;
    sigaction(signal, &action, &before_);
    in_handler = {};
    in_handler.is_libunwind_asked = false;  // it cannot handle every position at which a signal may arrive
  }
  ~Handler() { sigaction(signal_, &before_, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  int signal_;
  struct sigaction before_ {};
};

TEST_F(Unwind, FromASignalHandler) {
  if (kIsTsan) GTEST_SKIP();
  const Handler handler(SIGUSR1, 0);
  for (const int depth : {0, 10}) library_.of("unwound_raise")(depth, nullptr, nullptr);
  EXPECT_EQ(in_handler.calls, 2);
  EXPECT_GT(in_handler.fewest, 5U);
  EXPECT_EQ(in_handler.wrong, "");
}

TEST_F(Unwind, FromASignalHandlerAtAFunctionsFirstInstruction) {
  if (kIsTsan) GTEST_SKIP();
  const Handler handler(SIGTRAP, 0);
  library_.of("unwound_leaf")(3, nullptr, nullptr);
  EXPECT_EQ(in_handler.calls, 1);
  EXPECT_EQ(in_handler.wrong, "");
}

TEST_F(Unwind, FromASignalHandlerOnAStackOfItsOwn) {
  if (kIsTsan) GTEST_SKIP();
  constexpr std::size_t kBytes = 256 << 10;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t mine{memory, 0, kBytes}, before{};
  ASSERT_EQ(sigaltstack(&mine, &before), 0);
  {
    const Handler handler(SIGUSR1, SA_ONSTACK);
    library_.of("unwound_raise")(10, nullptr, nullptr);
    EXPECT_EQ(in_handler.calls, 1);
    EXPECT_GT(in_handler.fewest, 12U);
    EXPECT_EQ(in_handler.wrong, "");
  }
  sigaltstack(&before, nullptr);
  munmap(memory, kBytes);
}

TEST_F(Unwind, AtEachInstruction) {
  if (kIsTsan) GTEST_SKIP();
  Seen ignored;
  const Handler handler(SIGTRAP, 0);
  library_.of("unwound_stepped")(
      2, [](void*) {}, &ignored);
  EXPECT_GT(in_handler.calls, 100);
  EXPECT_EQ(in_handler.wrong, "");
}

TEST_F(Unwind, OnAThread) {
  Seen seen;
  std::thread([&] { library_.of("unwound_alloca")(20, compare, &seen); }).join();
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.wrong, "");
}

TEST_F(Unwind, AnotherLibraryAtTheSameAddresses) {
  for (int round = 0; round < 6; ++round) {
    const Library plugin(1 + round % 2);
    ASSERT_TRUE(plugin.is_open());
    Seen seen;
    plugin.of("unwound_deep")(5, compare, &seen);
    EXPECT_EQ(seen.wrong, "") << round;
  }
}

TEST(UnwindStress, ThreadsCaptureWhileLibrariesComeAndGo) {
#if !defined(__x86_64__)
  GTEST_SKIP();
#endif
  const Library library(1);
  ASSERT_TRUE(library.is_open());
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 3; ++seed)
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      const char* names[] = {"unwound_deep", "unwound_alloca", "unwound_aligned"};
      struct Counted {
        std::size_t frames = 0;
      };
      const auto count = [](void* with) {
        NativeFrame frames[256];
        static_cast<Counted*>(with)->frames = unwind(VRAMTRACK_CALLER_REGISTERS(), frames, 256);
      };
      Counted base;
      library.of("unwound_deep")(0, count, &base);
      for (int i = 0; i < 33'500; ++i) {
        const int depth = static_cast<int>(random() % 40);
        Counted seen;
        library.of(names[random() % 3])(depth, count, &seen);
        if (seen.frames != base.frames + static_cast<std::size_t>(depth)) ++wrong;
      }
    });
  std::thread loader([&] {
    for (int i = 0; !is_over; ++i) {
      const Library plugin(2);
      Seen seen;
      plugin.of("unwound_deep")(
          i % 7, [](void*) { ours(); }, &seen);
    }
  });
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  loader.join();
  EXPECT_EQ(wrong, 0);
}

// Tables of garbage: whatever they contain, the unwinder returns.
std::vector<unsigned char>* garbage = nullptr;
std::uint64_t garbage_base = 0;
bool read_garbage(std::uint64_t address, void* into, std::size_t bytes) {
  const std::uint64_t at = address - garbage_base;
  if (at > garbage->size() || bytes > garbage->size() - at) return false;
  std::memcpy(into, garbage->data() + at, bytes);
  return true;
}

TEST(UnwindTable, SurvivesCorruption) {
  const std::uint32_t own = modules().find(reinterpret_cast<std::uint64_t>(&read_garbage));
  ASSERT_NE(own, 0U);
  const Module& module = modules()[own];
  ASSERT_NE(module.table, 0U);
  std::vector<unsigned char> original(1 << 16);
  std::size_t size = original.size();
  while (size > 0 && !read_memory(module.table, original.data(), size)) size -= 4096;
  original.resize(size);
  ASSERT_GT(size, 4096U);
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<unsigned char> bytes = original;
    for (int i = 0; i < 200; ++i) bytes[random() % (i < 20 ? 64 : bytes.size())] = static_cast<unsigned char>(random());
    if (round % 2 == 0) {
      std::copy_n(original.begin(), 12, bytes.begin());
    }
    garbage = &bytes;
    garbage_base = module.table;
    for (int i = 0; i < 8; ++i)
      find_rule(read_garbage, module.table, module.begin + random() % (module.end - module.begin));
  }
}

}  // namespace
}  // namespace vramtrack::probe

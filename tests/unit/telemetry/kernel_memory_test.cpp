#include "telemetry/kernel_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "temp_folder.hpp"

namespace vramtrack::telemetry {
namespace {

/// The `format` file of i915_gem_object_create in Linux 6.
constexpr const char* kFormat =
    "name: i915_gem_object_create\n"
    "ID: 1705\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:struct drm_i915_gem_object * obj;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:u64 size;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\n"
    "print fmt: \"obj=%p, size=0x%llx\", REC->obj, REC->size\n";

TEST(KernelMemory, FindsTheFieldsOfATracepoint) {
  const auto event = event_of({"i915", "i915_gem_object_create", false, "obj", "size", 1, "", 0}, kFormat);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->handle_at, 8);
  EXPECT_EQ(event->handle_width, 8);
  EXPECT_EQ(event->bytes_at, 16);
  EXPECT_EQ(event->bytes_width, 8);
  EXPECT_EQ(event->kind_width, 0);
  EXPECT_EQ(id_of(kFormat), 1705U);
}

TEST(KernelMemory, ATracepointOfAnotherVersionIsNotCounted) {
  EXPECT_FALSE(event_of({"i915", "i915_gem_object_create", false, "obj", "bytes", 1, "", 0}, kFormat));
  EXPECT_FALSE(event_of({"i915", "i915_gem_object_create", false, "common_type", "size", 1, "", 0}, kFormat));
  EXPECT_FALSE(id_of("format:\n"));
}

TEST(KernelMemory, WhatTheLibrariesWereNotAskedForLiesBelowThem) {
  EXPECT_EQ(below_the_libraries({1000, "i915"}, 700), 300);
  EXPECT_EQ(below_the_libraries({1000, "i915"}, 1200), 0);
  EXPECT_EQ(below_the_libraries({1000, "i915"}, -50), 1000);  // earlier memory was released
}

TEST(KernelMemory, WithoutADriverNobodyTells) {
  TempFolder folder;
  KernelMemory::Options options;
  options.tracing = folder.file("");
  options.proc = folder.file("");
  auto memory = KernelMemory::open(options);
  ASSERT_TRUE(memory);
  EXPECT_FALSE(memory->held(1));
  options.nvidia_ioctls = true;
  options.dev = folder.file("");
  EXPECT_FALSE(KernelMemory::open(options));
}

TEST(KernelMemory, DrmTellsWhatAProcessHolds) {
  TempFolder folder;
  std::filesystem::create_directories(folder.file("7/fdinfo"));
  const auto tell = [&](const char* file, const char* kib) {
    std::ofstream(folder.file(std::string("7/fdinfo/") + file))
        << "pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t5\ndrm-memory-vram:\t" << kib
        << " KiB\n";
  };
  tell("3", "1000");
  tell("4", "1000");  // a duplicate of the same client
  KernelMemory::Options options;
  options.tracing = options.proc = folder.file("");
  auto memory = KernelMemory::open(options);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->held(7)->bytes, 0);
  tell("3", "1500");
  tell("4", "1500");
  EXPECT_EQ(memory->held(7)->bytes, 500 * 1024);
  EXPECT_EQ(memory->held(7)->by, "DRM fdinfo");
}

/// The machine's own tracepoints in place of a driver's: pipe buffers are created with one and freed with the other,
/// like i915's objects.
class OfThisKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    tracing = folder.file("tracing");
    std::filesystem::create_directories(tracing);
    is_mounted = ::mount("none", tracing.c_str(), "tracefs", 0, nullptr) == 0;
    if (!is_mounted) GTEST_SKIP() << "tracefs cannot be mounted";
    if (!std::filesystem::exists(tracing + "/events/kmem/kmalloc/format")) GTEST_SKIP() << "no tracepoints";
  }
  void TearDown() override {
    if (is_mounted) ::umount(tracing.c_str());
  }
  TempFolder folder;
  std::string tracing;
  bool is_mounted = false;
};

TEST_F(OfThisKernel, CountsObjectsFromTheirBeginToTheirEnd) {
  KernelMemory::Options options;
  options.tracing = tracing;
  options.proc = folder.file("");
  options.events = {{"kmem", "kmalloc", false, "ptr", "bytes_alloc", 1, "", 0},
                    {"kmem", "kfree", true, "ptr", "", 1, "", 0},
                    {"no-such-driver", "made", false, "obj", "size", 1, "", 0}};
  auto memory = KernelMemory::open(options);
  if (!memory) GTEST_SKIP() << memory.error().message;
  EXPECT_EQ(memory->groups(), std::vector<std::string>{"kmem"});
  const auto pid = static_cast<std::uint32_t>(::getpid());
  ASSERT_TRUE(memory->held(pid));
  constexpr std::int64_t kAtLeast = 64 * 16 * 40;  // for a pipe's ring of pages
  std::array<int, 2> pipes[64];
  for (auto& pipe : pipes) ASSERT_EQ(::pipe(pipe.data()), 0);
  const KernelHeld held = *memory->held(pid);
  EXPECT_GE(held.bytes, kAtLeast);
  EXPECT_EQ(held.by, "kmem");
  EXPECT_GE(memory->given(pid).objects, 64U);
  for (auto& pipe : pipes)
    for (const int end : pipe) ::close(end);
  EXPECT_LE(memory->held(pid)->bytes, held.bytes - kAtLeast);
}

}  // namespace
}  // namespace vramtrack::telemetry

// Vulkan memory that no longer contains a buffer or image belongs to its line again, not to a framework's cache.
#include <gtest/gtest.h>

#include "probe_script.hpp"
#include "trace/trace_report.hpp"

namespace vramtrack::trace {
namespace {

using probe::Call;
using probe::Record;

constexpr std::uint64_t kStep = 1U << 20U;
constexpr std::uint64_t kFirst = std::uint64_t{1} << 60U;

/// A renderer: pieces of memory by number, and the objects bound to them.
struct Renderer {
  ProbeScript script;
  std::uint32_t memory_line = script.line("/home/me/memory.py", 1), image_line = script.line("/home/me/image.py", 2);

  static std::uint64_t at(std::uint64_t number) { return kFirst + number * kStep; }
  void allocate(std::uint64_t number, std::uint64_t bytes = 4096) {
    script.alloc(at(number), bytes, memory_line, Call::vk_allocate_memory);
  }
  void bind(std::uint64_t number, std::uint64_t offset = 0, std::uint64_t bytes = 4096) {
    script.alloc(at(number) + offset, bytes, image_line, Call::vk_bind_image);
  }
  void destroy(std::uint64_t number, std::uint64_t offset = 0) {
    script.free(at(number) + offset, Call::vk_bind_image);
  }
  void free(std::uint64_t number) { script.free(at(number), Call::vk_allocate_memory); }
};

const ProcessTrace& only(const ProbeTrace& trace) {
  return *trace.processes().front();
}

/// The file of the leaking line; empty if none leaks.
std::string leaking(const ProbeTrace& trace) {
  Symbols symbols;
  ProbeNames names(trace, symbols, nullptr, OwnCode());
  const TraceReport report = report_of(trace, names);
  return report.leak ? std::string(symbols.file(report.sites.front().line.frame)) : std::string();
}

std::string leaking(const Renderer& renderer) {
  ProbeTrace trace;
  replay(trace, renderer.script.slots);
  return leaking(trace);
}

TEST(UnusedMemory, ItsBytesAreItsLinesWhileNothingLiesInIt) {
  struct Step {
    int bound;
    std::int64_t live, cached;
  };
  // Two images of 1000 bytes in memory of 4096.
  for (const Step& step :
       {Step{0, 4096, 0}, Step{1, 1000, 3096}, Step{2, 2000, 2096}, Step{3, 1000, 3096}, Step{4, 4096, 0}}) {
    Renderer vk;
    vk.allocate(0);
    if (step.bound > 0) vk.bind(0, 0, 1000);
    if (step.bound > 1) vk.bind(0, 2048, 1000);
    vk.allocate(9, 0);  // events after an allocation are not an exit
    if (step.bound > 2) vk.destroy(0, 0);
    if (step.bound > 3) vk.destroy(0, 2048);
    if (step.bound > 2) vk.allocate(10, 4096);
    ProbeTrace trace;
    replay(trace, vk.script.slots);
    EXPECT_EQ(only(trace).live_bytes(MemorySpace::device) - (step.bound > 2 ? 4096 : 0), step.live) << step.bound;
    EXPECT_EQ(only(trace).cached_bytes(), step.cached) << step.bound;
  }
}

TEST(UnusedMemory, FreedItIsGone) {
  Renderer vk;
  for (std::uint64_t i = 0; i < 200; ++i) {
    vk.allocate(i);
    vk.bind(i);
    vk.destroy(i);  // even if the program frees the memory first: the probe ends what is bound to it before that
    vk.free(i);
  }
  vk.allocate(999);
  ProbeTrace trace;
  replay(trace, vk.script.slots);
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 4096);
  EXPECT_EQ(only(trace).cached_bytes(), 0);
  EXPECT_EQ(leaking(trace), "");
}

TEST(UnusedMemory, AForgottenPieceIsALeakOfTheLineThatAllocatedIt) {
  Renderer vk;
  for (std::uint64_t i = 0; i < 60; ++i) {
    vk.allocate(i, 4096 + i % 8 * 256);
    vk.bind(i);
    if (i > 0) vk.destroy(i - 1);
  }
  EXPECT_EQ(leaking(vk), "/home/me/memory.py");
}

TEST(UnusedMemory, SoIsAPieceThatManyImagesShared) {
  Renderer vk;
  for (std::uint64_t i = 0; i < 60; ++i) {
    vk.allocate(i, 16384);
    for (std::uint64_t j = 0; j < 4; ++j) vk.bind(i, j * 4096);
    for (std::uint64_t j = 0; j < 4; ++j) vk.destroy(i, j * 4096);
  }
  EXPECT_EQ(leaking(vk), "/home/me/memory.py");
}

TEST(UnusedMemory, AnImageThatIsForgottenIsALeakOfTheImage) {
  Renderer vk;
  for (std::uint64_t i = 0; i < 60; ++i) {
    vk.allocate(i);
    vk.bind(i);
  }
  EXPECT_EQ(leaking(vk), "/home/me/image.py");
}

TEST(UnusedMemory, AHealthyAllocatorIsNotAccused) {
  {  // one piece that empties and is used again
    Renderer vk;
    vk.allocate(0, 65536);
    for (std::uint64_t i = 0; i < 300; ++i) {
      vk.bind(0, i % 16 * 4096);
      vk.destroy(0, i % 16 * 4096);
    }
    EXPECT_EQ(leaking(vk), "");
  }
  {  // eight pieces in turn, each of which is kept while it is empty
    Renderer vk;
    for (std::uint64_t i = 0; i < 300; ++i) {
      if (i < 8) vk.allocate(i);
      vk.bind(i % 8);
      if (i >= 4) vk.destroy((i - 4) % 8);
    }
    EXPECT_EQ(leaking(vk), "");
  }
  {  // frames that need more or less: pieces come and go with them
    Renderer vk;
    for (std::uint64_t frame = 0; frame < 60; ++frame) {
      const std::uint64_t count = 1 + frame * 7 % 5;
      for (std::uint64_t i = 0; i < count; ++i) vk.allocate(i), vk.bind(i);
      for (std::uint64_t i = 0; i < count; ++i) vk.destroy(i), vk.free(i);
    }
    EXPECT_EQ(leaking(vk), "");
  }
  {  // a scene that is loaded once and stays
    Renderer vk;
    for (std::uint64_t i = 0; i < 30; ++i) vk.allocate(i), vk.bind(i);
    for (std::uint64_t i = 0; i < 600; ++i) vk.allocate(99), vk.bind(99), vk.destroy(99), vk.free(99);
    EXPECT_EQ(leaking(vk), "");
  }
}

TEST(UnusedMemory, TheExitCountsNothingTwice) {
  for (const bool frees_memory : {false, true}) {
    Renderer vk;
    for (std::uint64_t i = 0; i < 10; ++i) vk.allocate(i), vk.bind(i, 0, 1000);
    for (std::uint64_t i = 0; i < 10; ++i) {
      vk.destroy(i);
      if (frees_memory) vk.free(i);
    }
    ProbeTrace trace;
    replay(trace, vk.script.slots);
    EXPECT_TRUE(only(trace).has_exit());
    EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 10'000) << "before the exit each image is live";
    EXPECT_EQ(only(trace).cached_bytes(), 30'960);
    std::int64_t at_exit = 0;
    for (const Held& held : only(trace).held_at_exit()) at_exit += held.bytes;
    EXPECT_EQ(at_exit, frees_memory ? 0 : 40'960);
  }
}

TEST(UnusedMemory, BoundAgainDuringTheExitItIsBacking) {
  Renderer vk;
  for (std::uint64_t i = 0; i < 300; ++i) vk.allocate(i), vk.bind(i);
  for (std::uint64_t i = 0; i < 250; ++i) vk.destroy(i);
  vk.bind(0, 0, 16);  // almost nothing: the exit continues
  for (std::uint64_t i = 250; i < 300; ++i) vk.destroy(i);
  ProbeTrace trace;
  replay(trace, vk.script.slots);
  EXPECT_TRUE(only(trace).has_exit());
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 300 * 4096 + 16);
}

TEST(UnusedMemory, OfASampleNobodyKnowsThatItIsUnused) {
  Renderer vk;
  vk.script.put(Record::sampling, Call::none, 0, 0, 0, 0, 0, 8);
  vk.allocate(0);
  vk.bind(0, 0, 1000);
  vk.allocate(1, 64);
  vk.destroy(0);
  vk.allocate(1, 64);
  ProbeTrace trace;
  replay(trace, vk.script.slots);
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 64);
  EXPECT_EQ(only(trace).cached_bytes(), 4096);
}

TEST(UnusedMemory, PyTorchsSegmentsStayItsCache) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.alloc(0x10000000, 1 << 20, line);
  script.alloc(0x10000000, 4096, line, Call::torch_block);
  script.alloc(0x20000000, 64, line);
  script.free(0x10000000, Call::torch_block);
  script.alloc(0x30000000, 64, line);
  ProbeTrace trace;
  replay(trace, script.slots);
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 128);
  EXPECT_EQ(only(trace).cached_bytes(), 1 << 20);
}

}  // namespace
}  // namespace vramtrack::trace

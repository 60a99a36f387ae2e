// Walls: fixture trees of cgroup files and /proc, and the forms in which limits are written.
#include "host/walls.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kGi = std::uint64_t{1} << 30U;

/// A machine with two GPUs of one kind.
struct Machine {
  TempFolder folder;
  std::vector<DeviceInfo> devices;
  ProcessInfo process;

  Machine() {
    for (int i = 0; i < 2; ++i) {
      DeviceInfo gpu;
      gpu.id = "GPU-000" + std::to_string(i);
      gpu.index = i;
      gpu.name = "Fake";
      gpu.pci_bus_id = "00000000:" + std::to_string(3 + i) + "A:00.0";
      gpu.capacity_bytes = 80 * kGi;
      devices.push_back(gpu);
    }
    process.pid = 42;
    process.start_ticks = 7;
    process.kind = "C";
    process.cgroup = "/kubepods/pod1/main";
  }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder.file(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void environment(std::initializer_list<const char*> entries) const {
    std::string text;
    for (const char* entry : entries) text += std::string(entry) + '\0';
    write("proc/42/environ", text);
  }
  [[nodiscard]] std::vector<Wall> walls() const { return reader().read(process, devices); }
  [[nodiscard]] WallReader reader() const { return {folder.file("proc"), folder.file("sys")}; }
};

TEST(Walls, TheKernelsLimitOfTheGroupAndOfEachGroupAboveIt) {
  const Machine m;
  m.write("sys/fs/cgroup/kubepods/pod1/main/dmem.max", "drm/0000:3a:00.0/vram0 max\ndrm/0000:4a:00.0/vram0 max\n");
  m.write("sys/fs/cgroup/kubepods/pod1/dmem.max",
          "drm/0000:3a:00.0/vram0 8589934592\ndrm/0000:3a:00.0/stolen 4096\ndrm/0000:4a:00.0/vram0 max\n");
  m.write("sys/fs/cgroup/kubepods/dmem.max", "drm/0000:3a:00.0/vram0 34359738368\n");
  m.write("sys/fs/cgroup/kubepods/pod1/main/dmem.min", "drm/0000:3a:00.0/vram0 1\n");
  EXPECT_THAT(m.walls(), ElementsAre(Wall{"GPU-0000", 8 * kGi, "dmem.max of /kubepods/pod1"},
                                     Wall{"GPU-0000", 32 * kGi, "dmem.max of /kubepods"}));
}

TEST(Walls, ALimitThatMovesIsReadAnew) {
  const Machine m;
  WallReader reader = m.reader();
  m.write("sys/fs/cgroup/kubepods/pod1/dmem.max", "drm/0000:3a:00.0/vram0 8589934592\n");
  EXPECT_EQ(reader.read(m.process, m.devices).front().bytes, 8 * kGi);
  m.write("sys/fs/cgroup/kubepods/pod1/dmem.max", "drm/0000:3a:00.0/vram0 4294967296\n");
  EXPECT_EQ(reader.read(m.process, m.devices).front().bytes, 4 * kGi);
  m.write("sys/fs/cgroup/kubepods/pod1/dmem.max", "drm/0000:3a:00.0/vram0 max\n");
  EXPECT_THAT(reader.read(m.process, m.devices), IsEmpty());
}

TEST(Walls, WithinAContainerTheRootIsItsOwnGroup) {
  Machine m;
  m.write("sys/fs/cgroup/dmem.max", "drm/0000:3a:00.0/vram0 8589934592\n");
  m.process.cgroup = "/";
  EXPECT_THAT(m.walls(), ElementsAre(Wall{"GPU-0000", 8 * kGi, "dmem.max of /"}));
  m.process.cgroup = "/worker";
  EXPECT_THAT(m.walls(), ElementsAre(Wall{"GPU-0000", 8 * kGi, "dmem.max of /"}));
}

TEST(Walls, APathThatLeadsOutOfTheCgroupsIsNotFollowed) {
  Machine m;
  m.write("sys/fs/dmem.max", "drm/0000:3a:00.0/vram0 1\n");
  m.process.cgroup = "/../x";
  EXPECT_THAT(m.walls(), IsEmpty());
  m.process.cgroup = "";
  EXPECT_THAT(m.walls(), IsEmpty());
}

TEST(Walls, ThePinnedLimitOfAnMpsClient) {
  Machine m;
  m.environment({"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2G,1=512MB"});
  EXPECT_THAT(m.walls(), IsEmpty()) << "it is not a client of MPS";
  m.process.kind = "MPS";
  const std::string name = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of pid 42";
  EXPECT_THAT(m.walls(), ElementsAre(Wall{"GPU-0000", 2 * kGi, name}, Wall{"GPU-0001", kGi / 2, name}));
  // CUDA numbers the visible GPUs, in that order.
  m.environment({"CUDA_VISIBLE_DEVICES=1,0", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2G"});
  EXPECT_THAT(m.walls(), ElementsAre(Wall{"GPU-0001", 2 * kGi, name}));
  // A single entry for an invisible GPU disables all of them.
  m.environment({"CUDA_VISIBLE_DEVICES=GPU-0001", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2G,1=1G"});
  EXPECT_THAT(m.walls(), IsEmpty());
}

TEST(Walls, HamisLimitCountsWhereItsLibraryIsLoaded) {
  Machine m;
  m.process.container = "0123456789abcdef";
  m.environment({"CUDA_DEVICE_MEMORY_LIMIT_0=3000m", "CUDA_DEVICE_MEMORY_LIMIT=1g"});
  EXPECT_THAT(m.walls(), IsEmpty());
  m.write("proc/42/maps", "7f00-7f01 r-xp 00000000 08:01 1 /usr/local/vgpu/libvgpu.so\n");
  const std::string name = "HAMi's CUDA_DEVICE_MEMORY_LIMIT of container 0123456789ab";
  EXPECT_THAT(m.walls(), ElementsAre(Wall{"GPU-0000", 3000 * kGi / 1024, name}, Wall{"GPU-0001", kGi, name}));
}

TEST(Walls, PyTorchsFractionIsOfTheGpu) {
  const Machine m;
  m.environment({"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,per_process_memory_fraction:0.5"});
  const std::string name = "PyTorch's per_process_memory_fraction of pid 42";
  EXPECT_THAT(m.walls(), ElementsAre(Wall{"GPU-0000", 40 * kGi, name}, Wall{"GPU-0001", 40 * kGi, name}));
}

TEST(Walls, GpusOfSeveralKindsHaveNoNumbersUnlessCudaIsToldTheirOrder) {
  Machine m;
  m.devices[1].name = "Faster";
  m.environment({"PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.5"});
  EXPECT_THAT(m.walls(), IsEmpty());
  m.environment({"PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.5", "CUDA_DEVICE_ORDER=PCI_BUS_ID"});
  EXPECT_EQ(m.walls().size(), 2U);
  m.environment({"PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.5", "CUDA_VISIBLE_DEVICES=GPU-0001"});
  EXPECT_EQ(m.walls().size(), 1U);
}

TEST(Walls, TheFormsOfLimits) {
  EXPECT_EQ(parse_dmem("a 1\nb max\n\nc\nd x\nE/F 2\n"), (std::map<std::string, std::uint64_t>{{"a", 1}, {"e/f", 2}}));
  EXPECT_EQ(parse_mps_limits("0=2G, 1 = 1024MB")->size(), 2U);
  for (const char* const bad : {"2G", "0=", "0=x", "x=1G", "0=0", "0=99999999999999999999"})
    EXPECT_FALSE(parse_mps_limits(bad)) << bad;
  EXPECT_EQ(parse_hami_limit("2g"), 2 * kGi);
  EXPECT_FALSE(parse_hami_limit(""));
  EXPECT_EQ(parse_torch_fraction("a:1,per_process_memory_fraction:0.25"), 0.25);
  for (const char* const bad : {"", "per_process_memory_fraction:0", "per_process_memory_fraction:2", "x"})
    EXPECT_FALSE(parse_torch_fraction(bad)) << bad;
}

TEST(Walls, AnEnvironmentIsReadOncePerProcess) {
  Machine m;
  WallReader reader = m.reader();
  m.environment({"PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.5"});
  EXPECT_EQ(reader.read(m.process, m.devices).size(), 2U);
  m.environment({});
  EXPECT_EQ(reader.read(m.process, m.devices).size(), 2U);
  m.process.start_ticks = 8;  // another process with the same pid
  EXPECT_THAT(reader.read(m.process, m.devices), IsEmpty());
  reader.keep({});
  EXPECT_THAT(reader.read(m.process, m.devices), IsEmpty());
}

}  // namespace
}  // namespace vramtrack

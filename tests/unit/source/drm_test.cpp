#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "paths.hpp"
#include "source/drm_clients.hpp"
#include "source/drm_sysfs.hpp"
#include "source/source.hpp"

namespace vramtrack {

extern const SourceInfo drm_source;

namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kGiB = 1024 * kMiB;

/// A private copy of the fixture trees, for making changes.
class Drm : public testing::Test {
 protected:
  Drm() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() / ("vramtrack_drm_" + std::string(test->name()) + std::to_string(getpid()));
    const fs::path fixtures = fs::path(tests_dir()) / "fixtures";
    fs::create_directories(root_);
    for (const char* tree : {"sys", "proc"})
      fs::copy(fixtures / tree, root_ / tree, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    config_.sys_root = (root_ / "sys").string();
    config_.proc_root = (root_ / "proc").string();
  }
  ~Drm() override { fs::remove_all(root_); }

  fs::path card(int number) { return root_ / "sys/class/drm" / ("card" + std::to_string(number)); }
  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  Batch poll(double seconds = 1) {
    if (!source_) {
      auto made = drm_source.make(config_, catalog_);
      EXPECT_TRUE(made) << made.error().message;
      if (!made) return {};
      source_ = std::move(*made);
    }
    now_ += from_seconds(seconds);
    Batch batch;
    EXPECT_TRUE(source_->poll(now_, batch));
    return batch;
  }
  std::optional<std::uint64_t> bytes(const Batch& batch, const std::string& device, std::uint32_t pid = 0) const {
    for (const Sample& sample : batch.samples)
      if (catalog_.key(sample.series).device_id == device && catalog_.key(sample.series).pid == pid)
        return sample.bytes;
    return std::nullopt;
  }

  fs::path root_;
  SourcesConfig config_;
  Catalog catalog_;
  std::unique_ptr<Source> source_;
  Timestamp now_;
};

constexpr const char* kW7900 = "9a1b2c3d4e5f6071";
constexpr const char* kNavi = "00000000:43:00.0";
constexpr const char* kXe = "00000000:4d:00.0";
constexpr const char* kArc = "00000000:5d:00.0";

TEST_F(Drm, FindsTheCardsWithMemoryAndOnlyThose) {
  poll();
  ASSERT_EQ(catalog_.devices().size(), 4U);
  const DeviceInfo* w7900 = catalog_.device(kW7900);
  ASSERT_NE(w7900, nullptr);
  EXPECT_EQ(w7900->name, "AMD Radeon PRO W7900");
  EXPECT_EQ(w7900->pci_bus_id, "00000000:03:00.0");
  EXPECT_EQ(w7900->capacity_bytes, 24 * kGiB);
  EXPECT_EQ(w7900->index, 0);
  ASSERT_NE(catalog_.device(kNavi), nullptr) << "a unique id of zeros is none";
  EXPECT_EQ(catalog_.device(kNavi)->name, "AMD GPU 1002:73bf");
  ASSERT_NE(catalog_.device(kXe), nullptr);
  EXPECT_EQ(catalog_.device(kXe)->capacity_bytes, 16 * kGiB) << "both tiles";
  ASSERT_NE(catalog_.device(kArc), nullptr);
  EXPECT_EQ(catalog_.device(kArc)->capacity_bytes, 16 * kGiB);
}

TEST_F(Drm, ReadsDevicesAndTheirProcesses) {
  const Batch batch = poll();
  EXPECT_EQ(bytes(batch, kW7900), 5 * kGiB);
  EXPECT_EQ(bytes(batch, kNavi), kGiB);
  EXPECT_EQ(bytes(batch, kXe), std::nullopt) << "the sum of the visible processes would be no device's use";
  EXPECT_EQ(bytes(batch, kW7900, 2001), 100 * kMiB) << "once, though open twice";
  EXPECT_EQ(bytes(batch, kNavi, 2001), 2 * kMiB);
  EXPECT_EQ(bytes(batch, kW7900, 2002), 700 * kMiB) << "what is resident, without the client shared with 2001";
  EXPECT_EQ(bytes(batch, kXe, 2003), 24000 * kKiB);
  EXPECT_EQ(bytes(batch, kW7900, 2004), std::nullopt) << "holds none";
  EXPECT_EQ(bytes(batch, kArc, 2005), 32 * kMiB);
  const ProcessInfo* server = catalog_.process(2003, 200300);
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(server->framework, "llama.cpp");
  EXPECT_EQ(server->user, "root");
  EXPECT_THAT(source_->notes().warnings, Contains(HasSubstr("driver xe does not report the memory in use")));
}

TEST_F(Drm, AnApuHasWhatItTakesOfTheHost) {
  write(card(0) / "device/gpu_metrics", std::string("\x80\x00\x02\x03", 4) + std::string(124, 'x'));
  write(card(0) / "device/mem_info_vram_total", std::to_string(512 * kMiB) + "\n");
  write(card(0) / "device/mem_info_vram_used", std::to_string(400 * kMiB) + "\n");
  write(card(0) / "device/mem_info_gtt_total", std::to_string(48 * kGiB) + "\n");
  write(card(0) / "device/mem_info_gtt_used", std::to_string(24 * kGiB) + "\n");
  const Batch batch = poll();
  EXPECT_EQ(catalog_.device(kW7900)->capacity_bytes, 48 * kGiB + 512 * kMiB);
  EXPECT_TRUE(catalog_.device(kW7900)->shares_host_memory);
  EXPECT_EQ(bytes(batch, kW7900), 24 * kGiB + 400 * kMiB);
  EXPECT_EQ(bytes(batch, kW7900, 2002), 750 * kMiB) << "700 MiB of the carve-out, 50 MiB of the host's";
  EXPECT_THAT(source_->notes().warnings, Contains(HasSubstr("shares the host's memory")));
  // A discrete GPU has the other form of the table.
  write(card(0) / "device/gpu_metrics", std::string("\x80\x00\x01\x03", 4) + std::string(124, 'x'));
  source_.reset();
  EXPECT_EQ(bytes(poll(), kW7900), 400 * kMiB);
}

TEST_F(Drm, FollowsChangesAndSaysWhenAProcessEnds) {
  poll();
  write(card(0) / "device/mem_info_vram_used", std::to_string(6 * kGiB) + "\n");
  write(root_ / "proc/2003/fdinfo/4",
        "drm-driver: xe\ndrm-pdev: 0000:4d:00.0\ndrm-client-id: 3\ndrm-resident-vram0: 1 GiB\n");
  Batch batch = poll();
  EXPECT_EQ(bytes(batch, kW7900), 6 * kGiB);
  EXPECT_EQ(bytes(batch, kXe, 2003), kGiB);
  fs::remove_all(root_ / "proc/2003");
  batch = poll();
  EXPECT_EQ(bytes(batch, kXe, 2003), std::nullopt);
  ASSERT_THAT(batch.events, SizeIs(1));
  EXPECT_EQ(batch.events[0].kind, Event::Kind::process_ended);
  EXPECT_EQ(batch.events[0].pid_start_ticks, 200300U);
}

TEST_F(Drm, AFileOpenedAnewUnderAnotherNumberIsNoRelease) {
  poll();
  fs::rename(root_ / "proc/2005/fd/3", root_ / "proc/2005/fd/17");
  fs::rename(root_ / "proc/2005/fdinfo/3", root_ / "proc/2005/fdinfo/17");
  EXPECT_EQ(bytes(poll(), kArc, 2005), 32 * kMiB);
}

TEST_F(Drm, ANewProcessIsFoundWithinSeconds) {
  fs::rename(root_ / "proc/2005", root_ / "hidden");
  EXPECT_EQ(bytes(poll(), kArc, 2005), std::nullopt);
  fs::rename(root_ / "hidden", root_ / "proc/2005");
  EXPECT_EQ(bytes(poll(6), kArc, 2005), 32 * kMiB);
}

TEST_F(Drm, ACardThatVanishesIsLostOnceAndResumes) {
  poll();
  fs::rename(card(0), root_ / "away");
  const Batch lost = poll();
  ASSERT_THAT(lost.events, SizeIs(1));
  EXPECT_EQ(lost.events[0].kind, Event::Kind::device_lost);
  EXPECT_EQ(lost.events[0].device_id, kW7900);
  EXPECT_EQ(bytes(lost, kW7900), std::nullopt);
  EXPECT_EQ(bytes(lost, kW7900, 2002), std::nullopt) << "its processes pause with it";
  EXPECT_EQ(bytes(lost, kNavi), kGiB);
  EXPECT_THAT(poll(20).events, IsEmpty());
  fs::rename(root_ / "away", card(0));
  const Batch back = poll(20);
  ASSERT_THAT(back.events, SizeIs(1));
  EXPECT_EQ(back.events[0].kind, Event::Kind::device_resumed);
  EXPECT_EQ(bytes(back, kW7900), 5 * kGiB);
  EXPECT_EQ(bytes(back, kW7900, 2002), 700 * kMiB);
}

TEST_F(Drm, OneInResetTellsNothingAndNoZero) {
  poll();
  write(card(0) / "device/mem_info_vram_used", "");
  EXPECT_EQ(bytes(poll(), kW7900), std::nullopt);
}

TEST_F(Drm, ACardPluggedInLaterIsFound) {
  fs::rename(card(1), root_ / "away");
  EXPECT_EQ(bytes(poll(), kNavi), std::nullopt);
  fs::rename(root_ / "away", card(1));
  EXPECT_EQ(bytes(poll(20), kNavi), kGiB);
}

TEST(DrmOpen, WithoutCardsSaysSo) {
  Catalog catalog;
  SourcesConfig config;
  config.sys_root = "/nonexistent";
  const auto made = drm_source.make(config, catalog);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("/nonexistent/class/drm"));
}

TEST(DrmFdinfo, UnitsAndKindsOfKeys) {
  const auto vram = [](const std::string& lines) { return drm::parse_fdinfo("drm-driver: x\n" + lines)->vram_bytes; };
  EXPECT_EQ(vram("drm-total-vram: 4096\n"), 4096U);
  EXPECT_EQ(vram("drm-memory-vram:\t3 MiB\n"), 3 * kMiB);
  EXPECT_EQ(vram("drm-resident-vram:  2 KiB  \n"), 2 * kKiB);
  EXPECT_EQ(vram("drm-resident-vram0: 1 KiB\ndrm-resident-vram1: 2 KiB\n"), 3 * kKiB);
  EXPECT_EQ(vram("drm-resident-vram: 1 KiB\ndrm-memory-vram: 9 KiB\ndrm-total-vram: 9 KiB\n"), 1 * kKiB);
  EXPECT_EQ(vram("drm-resident-gtt: 1 KiB\ndrm-engine-gfx: 12 ns\n"), std::nullopt) << "missing is not zero";
  EXPECT_EQ(vram("drm-resident-vram: many KiB\n"), std::nullopt);
  EXPECT_EQ(vram("drm-resident-vram: 5 furlongs\n"), std::nullopt);
  EXPECT_FALSE(drm::parse_fdinfo("pos: 0\nflags: 02\n"));
  EXPECT_FALSE(drm::parse_fdinfo(""));
}

RC_GTEST_PROP(DrmFdinfo, AnyTextIsReadWithoutHarm, (const std::string& text)) {
  drm::parse_fdinfo(text);
  drm::parse_fdinfo("drm-driver: x\ndrm-resident-vram" + text);
  RC_SUCCEED("read");
}

TEST(SourceTable, HoldsTheLiveSourcesByName) {
  std::vector<std::string_view> names;
  for (const SourceInfo* info : live_sources()) names.push_back(info->name);
  EXPECT_THAT(names, testing::IsSupersetOf({"nvml", "drm"}));
}

}  // namespace
}  // namespace vramtrack

// The ledger of a GPU: its parts, and which device file belongs to which GPU.
#include "live/ledger.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t kMi = 1024 * 1024;

Holder holder(std::uint32_t pid, std::set<std::string> files = {}) {
  Holder one;
  one.info.pid = pid;
  one.info.user = "ada";
  one.info.command = "python train.py";
  one.info.slurm_job = "77";
  one.age_s = 90;
  one.why = "it runs";
  one.files = std::move(files);
  return one;
}

/// One GPU with this much memory in use, and one process with this much of it.
struct Machine {
  Machine(std::uint64_t used_bytes, std::uint64_t process_bytes) {
    DeviceInfo device;
    device.id = "GPU-a";
    device.index = 0;
    device.pci_bus_id = "00000000:1D:00.0";
    device.capacity_bytes = 24576 * kMi;
    catalog.describe(device);
    batch.samples.push_back({{}, catalog.intern({Metric::device_used, "GPU-a", 0, 0, {}}), used_bytes});
    batch.samples.push_back({{}, catalog.intern({Metric::process_used, "GPU-a", 10, 5, {}}), process_bytes});
  }
  [[nodiscard]] Ledger ledger(const HoldersFound& found) const {
    return make_ledger(batch, catalog, found, folder.file("proc"), folder.file("sys"));
  }
  TempFolder folder;
  Catalog catalog;
  Batch batch;
};

TEST(Ledger, DividesWhatIsInUse) {
  const Machine machine(10000 * kMi, 4000 * kMi);
  EXPECT_EQ(listed_pids(machine.batch, machine.catalog), std::set<std::uint32_t>{10});
  const Ledger ledger = machine.ledger({{holder(10)}, 3});
  ASSERT_THAT(ledger.devices, SizeIs(1));
  const DeviceLedger& one = ledger.devices.front();
  EXPECT_EQ(one.process_bytes, 4000 * kMi);
  EXPECT_EQ(one.driver_bytes, 768 * kMi);
  EXPECT_EQ(one.unattributed_bytes, 5232 * kMi);
  const std::string text = ledger_text(ledger);
  EXPECT_THAT(text, HasSubstr("GPU 0: 9.8/24.0 GiB in use"));
  EXPECT_THAT(text, HasSubstr("1 process listed by the driver"));
  EXPECT_THAT(text, HasSubstr("it runs; Slurm job 77"));
  EXPECT_THAT(text, HasSubstr("3 processes of other users could not be inspected; run as root to see them"));
}

TEST(Ledger, ShowsWhatTheLinesOfAProcessHold) {
  const Machine machine(10000 * kMi, 4000 * kMi);
  Ledger ledger = machine.ledger({{holder(10)}, 0});
  EXPECT_THAT(ledger_text(ledger), Not(HasSubstr("allocated by")));
  ledger.devices.front().lines.front().sites = {{"train.py:57 train_step", 3000 * kMi}};
  EXPECT_THAT(ledger_text(ledger), HasSubstr("2.9 GiB  allocated by train.py:57 train_step\n"));
  EXPECT_THAT(ledger_json(ledger), HasSubstr(R"("sites":[{"site":"train.py:57 train_step","bytes":3145728000}])"));
}

TEST(Ledger, MemoryThatProcessesShareMakesNothingNegative) {
  const Machine machine(1000 * kMi, 4000 * kMi);
  const Ledger ledger = machine.ledger({{holder(10)}, 0});
  EXPECT_EQ(ledger.devices.front().driver_bytes, 0U);
  EXPECT_EQ(ledger.devices.front().unattributed_bytes, 0U);
  EXPECT_THAT(ledger_text(ledger), Not(HasSubstr("could not be inspected")));
}

TEST(Ledger, WhoeverHasTheGpuOpenAndIsNotListedIsNamed) {
  const Machine machine(10000 * kMi, 4000 * kMi);
  // The driver's own numbering differs from the GPU's index: nvidia3 is GPU 0.
  const std::string information = machine.folder.file("proc/driver/nvidia/gpus/0000:1d:00.0");
  std::filesystem::create_directories(information);
  std::ofstream(information + "/information") << "Model: \t\t Fake\nDevice Minor: \t 3\n";
  std::filesystem::create_directories(machine.folder.file("sys/class/drm/renderD129"));
  std::filesystem::create_symlink("../../../0000:1d:00.0", machine.folder.file("sys/class/drm/renderD129/device"));
  const Ledger ledger = machine.ledger({{holder(10, {"/dev/nvidia3"}), holder(11, {"/dev/nvidia3", "/dev/nvidiactl"}),
                                         holder(12, {"/dev/dri/renderD129"}), holder(13, {"/dev/nvidiactl"})},
                                        0});
  const DeviceLedger& one = ledger.devices.front();
  ASSERT_THAT(one.not_listed, SizeIs(2));
  EXPECT_EQ(one.not_listed[0].info.pid, 11U);
  EXPECT_EQ(one.not_listed[1].info.pid, 12U);
  ASSERT_THAT(ledger.elsewhere, SizeIs(1));
  EXPECT_EQ(ledger.elsewhere[0].info.pid, 13U);
  EXPECT_THAT(ledger_text(ledger), HasSubstr("open: /dev/nvidia3, /dev/nvidiactl"));
  EXPECT_THAT(ledger_json(ledger), HasSubstr("\"schema\":\"vramtrack.holders.v1\""));
}

TEST(Ledger, WhereTheDriverDoesNotTellWhatIsInUseTheProcessesAreListed) {
  Machine machine(0, 4000 * kMi);
  machine.batch.samples.erase(machine.batch.samples.begin());
  const Ledger ledger = machine.ledger({{holder(10)}, 0});
  ASSERT_THAT(ledger.devices, SizeIs(1));
  EXPECT_FALSE(ledger.devices.front().used_bytes);
  EXPECT_THAT(ledger_text(ledger), HasSubstr("the driver does not report how much memory is in use"));
  EXPECT_THAT(ledger_text(ledger), Not(HasSubstr("unattributed")));
  EXPECT_THAT(ledger_json(ledger), HasSubstr("\"used_bytes\":null"));
}

TEST(Ledger, WithoutTheDriversTableTheIndexIsTheNumber) {
  const Machine machine(10000 * kMi, 4000 * kMi);
  const Ledger ledger = machine.ledger({{holder(11, {"/dev/nvidia0"}), holder(12, {"/dev/nvidia1"})}, 0});
  EXPECT_THAT(ledger.devices.front().not_listed, SizeIs(1));
  EXPECT_THAT(ledger.elsewhere, SizeIs(1));
  EXPECT_THAT(ledger.devices.front().lines, IsEmpty()) << "pid 10 has ended since the poll";
}

}  // namespace
}  // namespace vramtrack

// Who holds a GPU, by a /proc of the test's own.
#include "host/holders.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A machine that has been up for 1000 s.
class Machine {
 public:
  Machine() {
    std::ofstream(proc_.file("uptime")) << "1000.00 900.00\n";
    add(1, 0, 1, 1, 'S', "systemd");
  }
  void add(int pid, int parent, int group, int session, char state, const std::string& name,
           const std::string& command = {}) {
    const std::string folder = proc_.file(std::to_string(pid));
    std::filesystem::create_directories(folder + "/fd");
    std::ofstream(folder + "/stat") << pid << " (" << name << ") " << state << ' ' << parent << ' ' << group << ' '
                                    << session << " 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 40000 0 0\n";
    std::string words = command.empty() ? name : command;
    std::replace(words.begin(), words.end(), ' ', '\0');
    std::ofstream(folder + "/cmdline") << words << '\0';
    std::ofstream(folder + "/status") << "Name:\t" << name << "\nUid:\t4000000\t4000000\t4000000\t4000000\n"
                                      << "NSpid:\t" << pid << "\n";
  }
  void open(int pid, const std::string& file, int fd = 3) const {
    std::filesystem::create_symlink(file, proc_.file(std::to_string(pid) + "/fd/" + std::to_string(fd)));
  }
  void write(int pid, const std::string& name, const std::string& text) const {
    std::ofstream(proc_.file(std::to_string(pid) + "/" + name)) << text;
  }
  [[nodiscard]] HoldersFound find(const std::set<std::uint32_t>& listed = {}) const {
    return find_holders(proc_.path(), listed);
  }

 private:
  TempFolder proc_;
};

TEST(Holders, OpenAndMappedDeviceFilesNameThem) {
  Machine machine;
  machine.add(10, 1, 10, 10, 'S', "python", "python train.py");
  machine.open(10, "/dev/nvidia0");
  machine.open(10, "/dev/nvidia-uvm", 4);
  machine.open(10, "/tmp/file", 5);
  machine.add(11, 1, 11, 11, 'S', "python");
  machine.write(11, "maps", "7f0000-7f1000 rw-s 0000 00:05 12 /dev/dri/renderD128\n");
  machine.add(12, 1, 12, 12, 'S', "bash");
  machine.open(12, "/dev/null");
  const HoldersFound found = machine.find();
  ASSERT_EQ(found.holders.size(), 2U);
  EXPECT_EQ(found.holders[0].info.command, "python train.py");
  EXPECT_EQ(found.holders[0].info.user, "4000000");
  EXPECT_THAT(found.holders[0].files, ElementsAre("/dev/nvidia-uvm", "/dev/nvidia0"));
  EXPECT_THAT(found.holders[1].files, ElementsAre("/dev/dri/renderD128"));
  EXPECT_EQ(found.holders[0].state, HolderState::alive);
  ASSERT_TRUE(found.holders[0].age_s);
  EXPECT_NEAR(*found.holders[0].age_s, 600, 1);
  EXPECT_EQ(found.not_inspected, 0U);
}

TEST(Holders, EachStateHasItsReason) {
  Machine machine;
  machine.add(20, 1, 20, 20, 'Z', "python");
  machine.add(21, 1, 21, 21, 'D', "python");
  machine.add(22, 1, 22, 22, 'S', "Xorg", "/usr/lib/xorg/Xorg :0");
  machine.add(23, 1, 23, 23, 'S', "nvidia-cuda-mps", "nvidia-cuda-mps-server");
  machine.add(24, 1, 999, 30, 'S', "pt_data_worker", "python train.py");  // its group's leader is not there any more
  machine.add(25, 1, 25, 25, 'S', "python", "python serve.py");
  machine.write(25, "status", "Uid:\t0\t0\t0\t0\nNSpid:\t25\t7\n");
  const HoldersFound found = machine.find({20, 21, 22, 23, 24, 25, 77});
  ASSERT_EQ(found.holders.size(), 7U);
  std::vector<HolderState> states;
  for (const Holder& holder : found.holders) states.push_back(holder.state);
  EXPECT_THAT(states,
              ElementsAre(HolderState::zombie, HolderState::uninterruptible, HolderState::service, HolderState::service,
                          HolderState::orphaned, HolderState::alive, HolderState::not_visible));
  EXPECT_THAT(found.holders[0].why, HasSubstr("pid 1 (systemd) has not reaped it"));
  EXPECT_EQ(found.holders[2].why, "display server");
  EXPECT_EQ(found.holders[3].why, "MPS server");
  EXPECT_THAT(found.holders[4].why, HasSubstr("the process that started it has ended"));
  EXPECT_TRUE(found.holders[4].is_helper);
  EXPECT_THAT(found.holders[5].why, HasSubstr("pid 7 in its own pid namespace"));
}

TEST(Holders, AWorkerWhoseParentLivesAndADaemonAreNoOrphans) {
  Machine machine;
  machine.add(30, 1, 30, 30, 'S', "python", "python train.py");
  machine.add(31, 30, 30, 30, 'S', "pt_data_worker", "python train.py");
  machine.add(32, 1, 32, 32, 'S', "python", "python daemon.py");
  for (const Holder& holder : machine.find({30, 31, 32}).holders) EXPECT_EQ(holder.state, HolderState::alive);
}

const std::string kSpawned =
    "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)";

TEST(Holders, AWorkerWhoseTrainerEndedIsAnOrphanAlthoughAScriptLeadsItsGroup) {
  struct Case {
    const char* why;
    std::string name;
    std::string command;
  };
  const std::vector<Case> workers = {{"forked", "pt_data_worker", "python train.py"},
                                     {"spawned", "python", kSpawned},
                                     {"frozen", "app", "app --multiprocessing-fork tracker_fd=5"},
                                     {"vLLM", "VLLM::EngineCor", "VLLM::EngineCore"},
                                     {"Ray", "ray::train_fn", "ray::train_fn"}};
  for (const Case& one : workers) {
    // A batch script of Slurm, which goes on with the next attempt.
    Machine batch;
    batch.add(50, 1, 50, 50, 'S', "slurmstepd");
    batch.add(51, 50, 51, 51, 'S', "slurm_script");
    batch.add(52, 51, 51, 51, 'S', "python", "python train.py --resume");
    batch.add(53, 50, 51, 51, 'S', one.name, one.command);
    EXPECT_EQ(batch.find({53}).holders.at(0).state, HolderState::orphaned) << one.why;
    // A retry loop that is pid 1 of a container.
    Machine container;
    container.add(1, 0, 1, 1, 'S', "entrypoint.sh");
    container.add(54, 1, 1, 1, 'S', one.name, one.command);
    EXPECT_EQ(container.find({54}).holders.at(0).state, HolderState::orphaned) << one.why;
  }
}

TEST(Holders, AWorkerThatAScriptsTrainerWaitsForIsNoOrphan) {
  Machine machine;
  machine.add(60, 1, 60, 60, 'S', "bash", "bash retry.sh");
  machine.add(61, 60, 60, 60, 'S', "train: epoch 3", "train: epoch 3");  // it has given itself a title since
  machine.add(62, 61, 60, 60, 'S', "pt_data_worker", "python train.py");
  machine.add(63, 61, 60, 60, 'S', "python", kSpawned);
  machine.add(64, 61, 64, 64, 'S', "python", kSpawned);          // in a session of its own
  machine.add(65, 60, 60, 60, 'S', "python", "python eval.py");  // the script's own program
  machine.add(66, 1, 60, 60, 'S', "python", "python left.py");   // left to run by the script, which lives
  for (const Holder& holder : machine.find({62, 63, 64, 65, 66}).holders)
    EXPECT_EQ(holder.state, HolderState::alive) << holder.info.pid;
}

TEST(Holders, AWorkerOfATrainerThatIsPid1IsNoOrphan) {
  // As `unshare --pid --fork` leaves it: the group is led from outside, and shows as 0.
  Machine outside;
  outside.add(1, 0, 0, 0, 'S', "python", "python train.py");
  outside.add(40, 1, 0, 0, 'S', "pt_data_worker", "python train.py");
  EXPECT_EQ(outside.find({40}).holders.at(0).state, HolderState::alive);
  // The group of a shell that has ended, which the trainer did not leave.
  Machine shell;
  shell.add(1, 0, 17, 17, 'S', "python", "python train.py");
  shell.add(41, 1, 17, 17, 'S', "pt_data_worker", "python train.py");
  EXPECT_EQ(shell.find({41}).holders.at(0).state, HolderState::alive);
}

}  // namespace
}  // namespace vramtrack

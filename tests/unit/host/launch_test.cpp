#include "host/launch.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

/// A separate /proc, with processes of one user.
class Launch : public ::testing::Test {
 protected:
  void add(int pid, int parent, int group, int session, const std::string& comm) {
    const std::string folder = proc_.file(std::to_string(pid));
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/stat") << pid << " (" << comm << ") S " << parent << ' ' << group << ' ' << session
                                    << " 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5000 0 0\n";
  }
  [[nodiscard]] std::string of(std::uint32_t pid) const { return launch_of(proc_.path(), pid, 5000); }

  TempFolder proc_;
};

TEST_F(Launch, RanksOfOneLauncherShareIt) {
  add(1, 0, 1, 1, "systemd");
  add(50, 1, 50, 50, "sshd");
  add(51, 50, 51, 51, "bash");  // interactive: one group per job
  add(60, 51, 60, 51, "torchrun");
  add(61, 60, 61, 61, "python");  // one session per rank, as with torchrun
  add(62, 60, 62, 62, "python");
  EXPECT_EQ(of(61), "torchrun pid 60");
  EXPECT_EQ(of(62), of(61));
  EXPECT_EQ(of(60), of(61));
}

TEST_F(Launch, RanksOfMpirunAndOfAScriptShareIt) {
  add(51, 1, 51, 51, "bash");
  add(70, 51, 70, 51, "run.sh");
  add(71, 70, 70, 51, "mpirun");
  add(72, 71, 72, 51, "solve");  // one group per rank, as with mpirun
  add(73, 71, 73, 51, "solve");
  EXPECT_EQ(of(72), "run.sh pid 70");
  EXPECT_EQ(of(73), of(72));
}

TEST_F(Launch, JobsOfOneShellOfASessionHostAndOfATimerDiffer) {
  add(51, 1, 51, 51, "bash");
  add(60, 51, 60, 51, "python");
  add(61, 51, 61, 51, "python");
  EXPECT_EQ(of(60), "python pid 60");
  EXPECT_EQ(of(61), "python pid 61");
  add(80, 1, 80, 80, "tmux: server");
  add(81, 80, 81, 81, "python");
  EXPECT_EQ(of(81), "python pid 81");
  add(90, 1, 90, 90, "systemd");
  add(91, 90, 91, 91, "vllm");
  add(92, 91, 91, 91, "VLLM::EngineCor");
  EXPECT_EQ(of(92), "vllm pid 91");
  add(95, 51, 95, 95, "python");  // setsid in a shell
  EXPECT_EQ(of(95), "python pid 95");
}

TEST_F(Launch, WhatIsLeftCountsWhereParentsHaveEnded) {
  add(1, 0, 1, 1, "init");
  add(60, 1, 51, 51, "python");
  add(62, 999, 62, 62, "python");
  EXPECT_EQ(of(60), "python pid 60");
  EXPECT_EQ(of(62), "python pid 62");
}

TEST_F(Launch, AnotherProcessOfThatPidIsNone) {
  add(60, 1, 60, 60, "python");
  EXPECT_EQ(launch_of(proc_.path(), 60, 4999), "");
  EXPECT_EQ(of(61), "");
}

}  // namespace
}  // namespace vramtrack

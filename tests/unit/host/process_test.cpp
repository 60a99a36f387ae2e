#include "host/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"
#include "paths.hpp"

namespace vramtrack {
namespace {

const std::string kFixtures = tests_dir() + "/fixtures/proc";
std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}
const std::string kId = repeated("4f1c0d9b", 8);

TEST(Process, StatIsReadPastParenthesesAndBlanksInTheName) {
  const auto stat = parse_stat("7 (a) R (b) S 1 7 7 0 -1 4194560 1 0 0 0 5 2 0 0 20 0 1 0 987654 1000 50\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) R (b");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->start_ticks, 987654U);
  EXPECT_EQ(stat->cpu_ticks, 7U);
  EXPECT_EQ(stat->resident_pages, 50U);
  EXPECT_FALSE(stat->is_forked_only);
  EXPECT_TRUE(parse_stat("7 (a) S 1 7 7 0 -1 4194624 1 0 0 0 5 2 0 0 20 0 1 0 9 1000 50")->is_forked_only);
  EXPECT_FALSE(parse_stat(""));
  EXPECT_FALSE(parse_stat("7 (name) S 1 7"));
  EXPECT_FALSE(parse_stat(")7("));
  EXPECT_FALSE(parse_stat("7 (n) S 1 7 7 0 -1 4194560 1 0 0 0 5 2 0 0 20 0 1 0 x 1000"));
}

TEST(Process, IdentityInAContainerIsReadFromOutside) {
  const auto info = read_process(kFixtures, 1001);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->start_ticks, 111100U);
  EXPECT_EQ(info->name, "python) S 1 (x");
  EXPECT_EQ(info->command, "python train.py --name two words");
  EXPECT_EQ(info->user, "root");
  EXPECT_EQ(info->container, kId);
  EXPECT_EQ(info->cgroup, "/system.slice/docker-" + kId + ".scope");
  EXPECT_EQ(info->ns_pid, 17U);
}

TEST(Process, AUserWithoutANameIsItsUidAndThePodIsKnown) {
  const auto info = read_process(kFixtures, 1002);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->user, "4000000001");
  EXPECT_EQ(info->pod, "0a1b2c3d-0011-2233-4455-66778899aabb");
  EXPECT_EQ(info->command, "VLLM::EngineCore");
  EXPECT_EQ(info->ns_pid, 7U);
}

TEST(Process, ALongCommandIsCutAndASlurmJobIsRead) {
  const auto info = read_process(kFixtures, 1003);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->command.size(), 256U);
  EXPECT_EQ(info->slurm_job, "4711.0");
  EXPECT_EQ(info->ns_pid, 0U);
}

TEST(Process, OneThatIsNotThereIsNotAnError) {
  EXPECT_FALSE(read_process(kFixtures, 999999));
  std::string scratch;
  EXPECT_FALSE(process_alive(kFixtures, 999999, scratch));
  EXPECT_EQ(read_mapped_names(kFixtures, 999999).access, MappedNames::Access::gone);
}

TEST(Process, MappedNamesAreFilesAndPackagesOnce) {
  const MappedNames mapped = read_mapped_names(kFixtures, 1002);
  EXPECT_EQ(mapped.access, MappedNames::Access::read);
  EXPECT_THAT(mapped.names, testing::ElementsAre("python3.11", "libtorch_cuda.so", "torch/", "_C.abi3.so", "vllm/"));
  EXPECT_THAT(read_mapped_names(kFixtures, 1001).names, testing::Contains("libcuda.so.550.54"));
}

TEST(Process, MapsAreReadInPiecesAndNoLineIsLost) {
  const TempFolder proc;
  std::filesystem::create_directory(proc.file("77"));
  std::vector<std::string> names;
  {
    std::ofstream maps(proc.file("77/maps"));
    for (int i = 0; i < 3000; ++i) {  // many times the buffer for one read
      names.push_back("lib" + std::to_string(i) + ".so");
      maps << "7f0000000000-7f0000001000 r-xp 00000000 08:01 " << i << "    /usr/lib/" << names.back() << "\n";
    }
  }
  const MappedNames mapped = read_mapped_names(proc.path(), 77);
  EXPECT_EQ(mapped.access, MappedNames::Access::read);
  EXPECT_EQ(mapped.names, names);
  // A real one: this program.
  EXPECT_THAT(read_mapped_names("/proc", static_cast<std::uint32_t>(getpid())).names, testing::Contains("host_test"));
}

TEST(Process, TheLivingOneIsItself) {
  std::string scratch;
  const auto pid = static_cast<std::uint32_t>(getpid());
  const auto first = process_alive("/proc", pid, scratch);
  const auto info = read_process("/proc", pid);
  ASSERT_TRUE(first && info);
  EXPECT_EQ(first->start_ticks, info->start_ticks);
  EXPECT_EQ(info->name, "host_test");
  EXPECT_FALSE(info->user.empty());
}

TEST(Process, MapsOfAnotherUserAreDeniedAndTheRestIsStillRead) {
  // A child without privilege examines its parent if that is root, else the first process.
  const auto other = static_cast<std::uint32_t>(geteuid() == 0 ? getpid() : 1);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(2);
    const bool denied = read_mapped_names("/proc", other).access == MappedNames::Access::denied;
    const auto info = read_process("/proc", other);
    _exit(denied && info && !info->user.empty() && info->start_ticks != 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Process, InnermostPid) {
  EXPECT_EQ(innermost_pid("Name:\tx\nNSpid:\t100\t20\t3\nThreads:\t1\n"), 3U);
  EXPECT_EQ(innermost_pid("NSpid:\t100\n"), 100U);
  EXPECT_EQ(innermost_pid("Name:\tx\n"), 0U);
}

}  // namespace
}  // namespace vramtrack

// Processes that the kernel killed for lack of host memory: records in its log, counters of cgroups.
#include "host/oom_kills.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kOfCgroup =
    "6,1201,99000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/kubepods.slice/pod1,task_memcg=/kubepods.slice/pod1/c1,task=python,pid=4242,uid=0\n";
constexpr const char* kKilledOfCgroup =
    "3,1202,99000001,-;Memory cgroup out of memory: Killed process 4242 (python) total-vm:9kB, anon-rss:8kB\n";
constexpr const char* kKilledOfMachine =
    "3,1302,99000001,-;Out of memory: Killed process 77 (a (b) c) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n";

TEST(OomKillReader, TellsWhoWasChosenAndWhoseMemoryRanOut) {
  OomKillReader reader;
  EXPECT_FALSE(reader.record(kOfCgroup));
  EXPECT_EQ(reader.record(kKilledOfCgroup), (OomKill{4242, "python", "/kubepods.slice/pod1"}));
  EXPECT_EQ(reader.record(kKilledOfMachine), (OomKill{77, "a (b) c", ""}));
  EXPECT_EQ(reader.record(kKilledOfCgroup), (OomKill{4242, "python", "/"})) << "its cgroup was not named";
}

TEST(OomKillReader, WhatProgramsWriteSaysNothing) {
  OomKillReader reader;
  EXPECT_FALSE(reader.record("30,1,1,-;Out of memory: Killed process 77 (x) total-vm:9kB"));
  for (const char* const bad :
       {"", ";", "3;Out of memory", "3,1,1,-;Killed process 77 (x) total-vm:9kB",
        "3,1,1,-;Out of memory: Killed process 0 (x)", "3,1,1,-;Out of memory: Killed process x"})
    EXPECT_FALSE(reader.record(bad)) << bad;
}

TEST(OomKillReader, CountersOfACgroup) {
  EXPECT_EQ(parse_memory_events("low 0\nhigh 7\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n"), (OomCounts{3, 2}));
  EXPECT_EQ(parse_memory_events("nonsense\noom\noom_kill x\n"), OomCounts{});
}

class OomKillsTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text, bool append = false) const {
    std::filesystem::create_directories(std::filesystem::path(folder.file(path)).parent_path());
    std::ofstream(folder.file(path), append ? std::ios::app : std::ios::trunc) << text;
  }
  void events(const std::string& cgroup, int limits, int kills) const {
    write("sys/fs/cgroup" + cgroup + "/memory.events",
          "oom " + std::to_string(limits) + "\noom_kill " + std::to_string(kills) + "\n");
  }
  OomKills open() const { return {folder.file("proc"), folder.file("sys")}; }
  TempFolder folder;
};

TEST_F(OomKillsTest, OnlyWhatIsLoggedFromNowOnCounts) {
  write("dev/kmsg", kKilledOfMachine);
  OomKills kills = open();
  EXPECT_THAT(kills.logged(), IsEmpty());
  write("dev/kmsg", kOfCgroup, true);
  write("dev/kmsg", kKilledOfCgroup, true);
  EXPECT_THAT(kills.logged(), ElementsAre(OomKill{4242, "python", "/kubepods.slice/pod1"}));
  EXPECT_THAT(kills.logged(), IsEmpty());
}

TEST_F(OomKillsTest, ACountThatRoseTellsOneEnd) {
  events("/a/b", 0, 1);
  events("/a", 0, 1);
  OomKills kills = open();
  kills.begin();
  kills.remember("/a/b");
  EXPECT_FALSE(kills.ended(42, "/a/b"));
  events("/a/b", 0, 2);
  events("/a", 1, 2);
  EXPECT_EQ(kills.ended(42, "/a/b"), (OomKill{42, "", "/a"})) << "the limit of the parent ran out";
  EXPECT_FALSE(kills.ended(43, "/a/b"));
}

TEST_F(OomKillsTest, WithoutALimitItWasTheMachine) {
  events("/a", 0, 0);
  OomKills kills = open();
  kills.begin();
  kills.remember("/a");
  events("/a", 0, 1);
  EXPECT_EQ(kills.ended(42, "/a"), (OomKill{42, "", ""}));
}

TEST_F(OomKillsTest, AFolderThatEndedWithItsProcessIsToldByItsParent) {
  events("/a/b", 0, 0);
  events("/a", 0, 0);
  OomKills kills = open();
  kills.begin();
  kills.remember("/a/b");
  std::filesystem::remove_all(folder.file("sys/fs/cgroup/a/b"));
  EXPECT_FALSE(kills.ended(42, "/a/b"));
  events("/a", 1, 1);
  EXPECT_EQ(kills.ended(42, "/a/b"), (OomKill{42, "", "/a"}));
  EXPECT_FALSE(kills.ended(42, "/../../etc"));
  kills.begin();
  kills.forget_others();
  events("/a", 2, 2);
  EXPECT_FALSE(kills.ended(42, "/a/b"));
}

}  // namespace
}  // namespace vramtrack

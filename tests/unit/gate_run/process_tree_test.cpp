#include "gate/run/process_tree.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"
#include "core/units.hpp"

namespace vramtrack::gate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void add_process(const TempFolder& proc, int pid, int parent, const std::string& name = "python") {
  std::filesystem::create_directory(proc.file(std::to_string(pid)));
  std::ofstream(proc.file(std::to_string(pid)) + "/stat") << pid << " (" << name << ") S " << parent << " 1 1 0 -1\n";
}

TEST(ProcessTree, IsARootAndAllBelowIt) {
  const TempFolder proc;
  add_process(proc, 10, 1);
  add_process(proc, 11, 10);
  add_process(proc, 12, 11, "a) S 99 (b");  // a name may hold anything
  add_process(proc, 20, 1);
  add_process(proc, 21, 20);
  std::filesystem::create_directory(proc.file("self"));
  EXPECT_THAT(process_tree(proc.path(), 10), ElementsAre(10U, 11U, 12U));
  EXPECT_THAT(process_tree(proc.path(), 21), ElementsAre(21U));
  EXPECT_THAT(process_tree(proc.path(), 77), ElementsAre(77U)) << "one that has ended";
}

TEST(ProcessTree, AProcessThatEndsWhileItIsReadIsNoError) {
  const TempFolder folder;
  // Reading a directory fails as reading the file of a process that is gone does: after it was opened.
  std::filesystem::create_directories(folder.file("4242/stat"));
  EXPECT_THAT(process_tree(folder.path(), 1), testing::ElementsAre(1));
}

TEST(ProcessTreeMemory, AddsUpWhatTheTreeHoldsOnAllDevices) {
  SourcesConfig config;
  config.enabled = {"drm"};
  config.sys_root = VRAMTRACK_TESTS_DIR "/fixtures/sys";
  config.proc_root = VRAMTRACK_TESTS_DIR "/fixtures/proc";
  ProcessTreeMemory memory(config);
  const auto one = memory.used_bytes(2001);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(*one, 102 * kMiB) << "100 MiB on one card, 2 MiB on the other";
  EXPECT_EQ(*memory.used_bytes(2002), 700 * kMiB);
  EXPECT_GT(*memory.used_bytes(1), 800 * kMiB) << "init's are all";
  EXPECT_EQ(*memory.used_bytes(77), 0) << "nobody's";
}

TEST(ProcessTreeMemory, WithoutASourceSaysWhyAndWhatToDo) {
  SourcesConfig config;
  config.enabled = {"drm"};
  config.sys_root = "/no-such-folder";
  ProcessTreeMemory memory(config);
  const auto used = memory.used_bytes(1);
  ASSERT_FALSE(used);
  EXPECT_THAT(used.error().message, HasSubstr("no GPU memory can be read here (drm: "));
  EXPECT_THAT(used.error().message, HasSubstr("see 'vramtrack doctor'"));
}

}  // namespace
}  // namespace vramtrack::gate

#include "host/process_tree.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;

void add_process(const TempFolder& proc, int pid, int parent, const std::string& name = "python") {
  std::filesystem::create_directory(proc.file(std::to_string(pid)));
  std::ofstream(proc.file(std::to_string(pid)) + "/stat")
      << pid << " (" << name << ") S " << parent << " 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5000 0 0\n";
}

TEST(ProcessTree, IsARootAndAllBelowIt) {
  const TempFolder proc;
  add_process(proc, 10, 1);
  add_process(proc, 11, 10);
  add_process(proc, 12, 11, "a) S 99 (b");  // a name may contain anything
  add_process(proc, 20, 1);
  add_process(proc, 21, 20);
  std::filesystem::create_directory(proc.file("self"));
  EXPECT_THAT(process_tree(proc.path(), 10), ElementsAre(10U, 11U, 12U));
  EXPECT_THAT(process_tree(proc.path(), 21), ElementsAre(21U));
  EXPECT_THAT(process_tree(proc.path(), 77), ElementsAre(77U)) << "one that has ended";
}

TEST(ProcessTree, AroundAProcessAreItsParentsAndThenItsSession) {
  const TempFolder proc;
  const auto add = [&](int pid, int parent, int session) {
    std::filesystem::create_directory(proc.file(std::to_string(pid)));
    std::ofstream(proc.file(std::to_string(pid)) + "/stat")
        << pid << " (sh) S " << parent << " 1 " << session << " 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5000 0 0\n";
  };
  add(1, 0, 1);
  add(10, 1, 10);   // a shell
  add(11, 10, 10);  // the program
  add(12, 10, 10);  // a script that runs after it
  add(13, 12, 10);  // the process that makes marks
  add(20, 1, 20);   // in another session
  EXPECT_THAT(processes_around(proc.path(), 13),
              ElementsAre(ElementsAre(12U), ElementsAre(10U), ElementsAre(1U), ElementsAre(11U)));
  EXPECT_THAT(processes_around(proc.path(), 77), ElementsAre()) << "one that has ended";
}

TEST(ProcessTree, AProcessThatEndsWhileItIsReadIsNoError) {
  const TempFolder folder;
  // Reading a directory fails like reading the file of a process that has gone: after it was opened.
  std::filesystem::create_directories(folder.file("4242/stat"));
  EXPECT_THAT(process_tree(folder.path(), 1), ElementsAre(1U));
}

}  // namespace
}  // namespace vramtrack

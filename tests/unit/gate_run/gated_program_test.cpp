// Real programs (shell scripts) under the gate: their marks, their end, and their environment.
#include "gate/run/gated_program.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "../temp_folder.hpp"
#include "gate/run/evidence_files.hpp"

namespace vramtrack::gate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNoSample_s = 3600;

Result<double> unseen(int) {
  return fail("no GPU here");
}

Result<ProgramRun> run_shell(const std::string& script, const TreeMemory& memory = unseen,
                             const std::string& evidence = "") {
  return run_gated({"sh", "-c", script}, kNoSample_s, memory, evidence);
}

TEST(GatedProgram, MarksWithBytesAreTakenByNameAndWriter) {
  const auto run = run_shell(
      "eval \"exec 9>&$VRAMTRACK_MARK_FD\"; echo step 100 >&9; echo step 200 r1 >&9; echo 'step 300' >&9; echo epoch 7 "
      ">&9; "
      "echo 'what is this' >&9");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->exit_code, 0);
  EXPECT_FALSE(run->interrupted);
  EXPECT_EQ(run->skipped_lines, 1U);
  ASSERT_THAT(run->marks, SizeIs(3));
  EXPECT_EQ(run->marks[0].name, "step");
  EXPECT_THAT(run->marks[0].used_bytes, ElementsAre(100, 300));
  EXPECT_EQ(run->marks[1].key, "r1");
  EXPECT_THAT(run->marks[1].used_bytes, ElementsAre(200));
  EXPECT_EQ(run->marks[2].name, "epoch");
}

TEST(GatedProgram, MarksWithoutBytesAreMeasured) {
  double used_bytes = 0;
  int root = 0;
  const auto run = run_shell("eval \"exec 9>&$VRAMTRACK_MARK_FD\"; echo step >&9; echo step >&9; echo $$ >/dev/null",
                             [&](int pid) -> Result<double> {
                               root = pid;
                               return used_bytes += 1000;
                             });
  ASSERT_TRUE(run);
  ASSERT_THAT(run->marks, SizeIs(1));
  EXPECT_THAT(run->marks[0].used_bytes, ElementsAre(1000, 2000));
  EXPECT_GT(root, 1);
}

TEST(GatedProgram, WhatCannotBeMeasuredSaysWhy) {
  const auto run = run_shell("eval \"exec 9>&$VRAMTRACK_MARK_FD\"; echo step >&9");
  ASSERT_TRUE(run);
  EXPECT_THAT(run->marks, IsEmpty());
  EXPECT_EQ(run->not_measured, "no GPU here");
  EXPECT_EQ(run_shell("true")->not_measured, "no GPU here") << "nor a program that ends before its first sample";
}

TEST(GatedProgram, EndIsAnExitCodeOrASignal) {
  EXPECT_EQ(run_shell("exit 7")->exit_code, 7);
  const auto killed = run_shell("kill -9 $$");
  EXPECT_EQ(killed->exit_code, std::nullopt);
  EXPECT_EQ(killed->signal, SIGKILL);
  const auto missing = run_gated({"no-such-program"}, kNoSample_s, unseen, "");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("cannot run no-such-program: No such file or directory; "));
}

TEST(GatedProgram, DescendantsThatKeepThePipeDoNotKeepTheGate) {
  const TempFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // It opens the pipe, which waits until this test opens it, too; it ends only then.
  const auto run =
      run_shell("read -r line <'" + pipe + "' & eval \"exec 9>&$VRAMTRACK_MARK_FD\"; echo step 1 >&9; echo $! >&9");
  std::ofstream(pipe) << "end\n";
  ASSERT_TRUE(run);
  EXPECT_THAT(run->marks, SizeIs(1));
}

TEST(GatedProgram, EvidenceFolderIsNamedAndGoes) {
  std::string path;
  {
    const EvidenceFolder evidence;
    path = evidence.path();
    ASSERT_NE(path, "");
    const auto run = run_shell(
        "printf 'step 64 128\\n67108864 train.py:12 in f<1>\\n-5 x.py:1 in g\\n1048576 b.py:2 in h\\n' "
        "> \"$VRAMTRACK_TEST_EVIDENCE/main.sites\"",
        unseen, path);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->exit_code, 0);
    EXPECT_THAT(
        grown_words(read_grown_lines(path, "")),
        ElementsAre("grew most from step 64 to step 128:", "  train.py:12 in f<1>: +64 MiB", "  b.py:2 in h: +1 MiB"));
    EXPECT_THAT(read_grown_lines(path, "rank1").lines, IsEmpty()) << "another writer's";
    EXPECT_THAT(read_grown_lines(path, "../" + path.substr(path.rfind('/') + 1) + "/main").lines, IsEmpty())
        << "a key is no path";
  }
  EXPECT_THAT(read_grown_lines(path, "").lines, IsEmpty());
  EXPECT_THAT(grown_words({}), IsEmpty());
}

TEST(GatedProgram, EvidenceThatIsNoneIsEmpty) {
  const EvidenceFolder evidence;
  const auto run = run_shell("echo nonsense > \"$VRAMTRACK_TEST_EVIDENCE/main.sites\"", unseen, evidence.path());
  ASSERT_TRUE(run);
  EXPECT_THAT(read_grown_lines(evidence.path(), "").lines, IsEmpty());
}

}  // namespace
}  // namespace vramtrack::gate

#include "act/run_program.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "../temp_folder.hpp"
#include "patience.hpp"

namespace vramtrack::act {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::atomic<bool> kGoOn{false};

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(RunProgram, GetsTheAlertAndTheVariables) {
  const TempFolder folder;
  const std::string out = folder.file("out");
  const Outcome outcome = run_program({"sh", "-c", "cat >\"$1\"; echo \"$VRAMTRACK_ALERT_X\" >>\"$1\"", "sh", out},
                                      std::string(1 << 20, 'j') + '\n', {{"VRAMTRACK_ALERT_X", "v; $(id)"}}, 10, kGoOn);
  EXPECT_EQ(outcome.kind, Outcome::Kind::delivered) << outcome.why;
  EXPECT_EQ(text_of(out), std::string(1 << 20, 'j') + "\nv; $(id)\n");
}

TEST(RunProgram, NoShellReadsTheArguments) {
  const TempFolder folder;
  const std::string& out = folder.path();
  EXPECT_EQ(run_program({"touch", out + "/a b;$(id)"}, "", {}, 10, kGoOn).kind, Outcome::Kind::delivered);
  EXPECT_TRUE(std::filesystem::exists(out + "/a b;$(id)"));
}

TEST(RunProgram, FailuresAreTriedAgainAndSayWhy) {
  Outcome outcome = run_program({"sh", "-c", "echo first >&2; echo no mail server >&2; exit 3"}, "", {}, 10, kGoOn);
  EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
  EXPECT_THAT(outcome.why, EndsWith("sh ended with exit status 3: no mail server"));  // its path if run by root
  outcome = run_program({"sh", "-c", "kill -TERM $$"}, "", {}, 10, kGoOn);
  EXPECT_THAT(outcome.why, HasSubstr("signal 15"));
  outcome = run_program({"/no/such/program"}, "", {}, 10, kGoOn);
  EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
  EXPECT_THAT(outcome.why, HasSubstr("could not be started: No such file"));
}

TEST(RunProgram, TheWholeGroupEndsWithItsTime) {
  const TempFolder folder;
  const std::string out = folder.file("late");
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome =
      run_program({"sh", "-c", "(sleep 2; touch \"$1\") & sleep 60", "sh", out}, "", {}, 0.3, kGoOn);
  EXPECT_THAT(outcome.why, HasSubstr("took longer than 0.3 s"));
  // If the group's other member had lived, it would have written by then.
  EXPECT_EQ(run_program({"sleep", "2.2"}, "", {}, 10, kGoOn).kind, Outcome::Kind::delivered);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, patience(std::chrono::seconds(10)));
}

TEST(RunProgram, WhatStaysBehindIsNotWaitedFor) {
  const TempFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // It opens the pipe, which waits until this test opens it, too; it ends only then.
  EXPECT_EQ(run_program({"sh", "-c", "read -r line <\"$1\" & exit 0", "sh", pipe}, "", {}, 30, kGoOn).kind,
            Outcome::Kind::delivered);
  std::ofstream(pipe) << "end\n";
}

TEST(RunProgram, AProgramThatClosesItsOutputIsWaitedFor) {
  EXPECT_THAT(run_program({"sh", "-c", "exec 2>&-; sleep 0.2; exit 7"}, "", {}, 10, kGoOn).why, HasSubstr("status 7"));
}

TEST(RunProgram, StopEndsIt) {
  const std::atomic<bool> stop{true};
  EXPECT_THAT(run_program({"sleep", "60"}, "", {}, 60, stop).why, HasSubstr("because vramtrack ended"));
}

TEST(RunProgram, NoneOfOurFilesAreOpenInIt) {
  const TempFolder folder;
  const std::string out = folder.file("fds");
  const int fd = ::open("/dev/null", 0);  // without O_CLOEXEC, as a parent may have left one
  ASSERT_GT(fd, 2);
  ASSERT_EQ(run_program({"sh", "-c", "ls -l /proc/$$/fd >\"$1\"", "sh", out}, "", {}, 10, kGoOn).kind,
            Outcome::Kind::delivered);
  EXPECT_THAT(text_of(out), Not(HasSubstr(" " + std::to_string(fd) + " -> /dev/null")));
  ::close(fd);
}

TEST(RunProgram, GetsNoSecretsOfOurEnvironment) {
  const TempFolder folder;
  const std::string out = folder.file("env");
  ::setenv("AWS_SECRET_ACCESS_KEY", "hunter2", 1);
  ::setenv("LD_PRELOAD_OF_OTHERS", "x.so", 1);
  ::setenv("VRAMTRACK_ALERT_FORGED", "1", 1);
  ASSERT_EQ(run_program({"sh", "-c", "env >\"$1\"", "sh", out}, "", {{"VRAMTRACK_ALERT_PID", "7"}}, 10, kGoOn).kind,
            Outcome::Kind::delivered);
  for (const char* name : {"AWS_SECRET_ACCESS_KEY", "LD_PRELOAD_OF_OTHERS", "VRAMTRACK_ALERT_FORGED"}) {
    ::unsetenv(name);
    EXPECT_THAT(text_of(out), Not(HasSubstr(name)));
  }
  EXPECT_THAT(text_of(out), HasSubstr("PATH="));
  EXPECT_THAT(text_of(out), HasSubstr("VRAMTRACK_ALERT_PID=7\n"));
}

TEST(Variables, HoldNoNul) {
  Message m;
  m.event = "raised";
  m.text = std::string("a\0b\nmore", 8);
  const Outcome outcome =
      run_program({"sh", "-c", "test \"$VRAMTRACK_ALERT_HEADLINE\" = ab"}, "", variables_of(m, {}), 10, kGoOn);
  EXPECT_EQ(outcome.kind, Outcome::Kind::delivered) << outcome.why;
}

TEST(RunProgram, OneThatOthersMayChangeIsNotRunAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("shared"));
  const std::string program = folder.file("shared/save");
  std::ofstream(program) << "#!/bin/sh\ntouch \"$1\"\n";
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  EXPECT_EQ(run_program({program, folder.file("first")}, "", {}, 10, kGoOn).kind, Outcome::Kind::delivered);
  ASSERT_EQ(::chmod(folder.file("shared").c_str(), 0777), 0);
  const Outcome outcome = run_program({program, folder.file("second")}, "", {}, 10, kGoOn);
  EXPECT_THAT(outcome.why, HasSubstr("is not run, because another user could replace it"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("second")));
}

}  // namespace
}  // namespace vramtrack::act

#include "host/privilege.hpp"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

/// Gives this thread the capability as systemd's AmbientCapabilities= does; returns false without the right to do so.
bool make_ambient(unsigned capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return false;
  data[0].inheritable |= 1U << capability;
  return ::syscall(SYS_capset, &header, data.data()) == 0 &&
         ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0;
}

TEST(Privilege, ProgramsThatAreStartedGetNoCapabilities) {
  const pid_t child = ::fork();  // a separate process, so that the other tests keep their privileges
  if (child == 0) {
    if (!make_ambient(CAP_SYS_PTRACE)) ::_exit(77);
    const bool given = ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SYS_PTRACE, 0, 0) == 1;
    keep_capabilities();
    const bool kept = ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SYS_PTRACE, 0, 0) == 0;
    ::_exit(given && kept && may_read_others() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs CAP_SYS_PTRACE, as root has it";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Privilege, AnotherUserWithTheCapabilityReadsOthers) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() != 0 || ::prctl(PR_SET_KEEPCAPS, 1) != 0) ::_exit(77);
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(77);
    const bool without = may_read_others();  // changing the user empties the effective set
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> data{};
    ::syscall(SYS_capget, &header, data.data());
    data[0].effective = 1U << CAP_SYS_PTRACE;
    if (::syscall(SYS_capset, &header, data.data()) != 0) ::_exit(77);
    ::_exit(!without && may_read_others() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs root";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Privilege, AProgramThatOthersMayChangeIsNotRun) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("bin"));
  const std::string program = folder.file("bin/save");
  std::ofstream(program) << "#!/bin/sh\n";
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  const std::string path = ::getenv("PATH");
  ASSERT_EQ(::setenv("PATH", (folder.file("none") + ":" + folder.file("bin") + ":" + path).c_str(), 1), 0);
  const bool asks = is_privileged();
  using Words = std::vector<std::string>;
  EXPECT_EQ(trusted_command({program, "now"}).value(), (Words{program, "now"}));
  EXPECT_EQ(trusted_command({"save"}).value(), Words{asks ? program : "save"}) << "what was looked at is what is run";
  EXPECT_EQ(trusted_command({"no-such-program"}).value(), Words{"no-such-program"});
  for (const std::string& changed : {program, folder.file("bin")}) {
    ASSERT_EQ(::chmod(changed.c_str(), 0777), 0);
    for (const std::string& name : {program, std::string("save")}) {
      const auto trusted = trusted_command({name});
      EXPECT_EQ(trusted.has_value(), !asks) << changed;
      if (!trusted) {
        EXPECT_NE(trusted.error().message.find(changed + " can be written by other users"), std::string::npos);
      }
    }
    ASSERT_EQ(::chmod(changed.c_str(), 0755), 0);
  }
  ASSERT_EQ(::setenv("PATH", path.c_str(), 1), 0);
}

TEST(Privilege, AFileThatOthersMayChangeIsNoArgument) {
  const TempFolder folder;
  const std::string script = folder.file("save.sh");
  std::ofstream(script) << "exit 0\n";
  const std::string shown = std::filesystem::path(script).filename().string();
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(script).parent_path());
  const std::vector<std::vector<std::string>> commands = {
      {"/bin/sh", script},
      {"sh", "-x", shown},  // from the working folder
      {"/bin/sh", "-c", script + " --now >/dev/null"},
      {"/bin/sh", "-c", "cd /; if true; then (. '" + script + "'); fi"},
      {"/usr/bin/env", "A=1", "BASH_ENV=" + script, "true"},
      {"/usr/bin/perl", "-I" + script},
      {"/usr/bin/python3", "-c", "exec(open(\"" + script + "\").read())"},
      {"/usr/bin/curl", "file://" + script},
  };
  for (const std::vector<std::string>& command : commands) {
    ASSERT_EQ(::chmod(script.c_str(), 0644), 0);
    EXPECT_TRUE(trusted_command(command)) << command.back();
    ASSERT_EQ(::chmod(script.c_str(), 0666), 0);
    const auto trusted = trusted_command(command);
    EXPECT_EQ(trusted.has_value(), !is_privileged()) << command.back();
    if (!trusted) {
      EXPECT_NE(trusted.error().message.find("that its arguments name"), std::string::npos);
      EXPECT_NE(trusted.error().message.find("save.sh can be written by other users"), std::string::npos);
    }
  }
  std::filesystem::current_path(before);
  EXPECT_TRUE(trusted_command({"/bin/sh", "-c", "echo a/b >/dev/null; ls /no/such/file /tmp"})) << "no files";
}

TEST(Privilege, ALibraryThatOthersMayChangeIsNotLoaded) {
  const TempFolder folder;
  const std::string library = folder.file("libnvidia-ml.so.1");
  std::ofstream(library) << "code";
  ASSERT_EQ(::chmod(library.c_str(), 0644), 0);
  EXPECT_TRUE(trusted_library(library));
  EXPECT_TRUE(trusted_library("libnvidia-ml.so.1")) << "the loader's";
  ASSERT_EQ(::chmod(library.c_str(), 0666), 0);
  const auto trusted = trusted_library(library);
  EXPECT_EQ(trusted.has_value(), !is_privileged());
  if (!trusted) {
    EXPECT_NE(trusted.error().message.find(library + " can be written by other users"), std::string::npos);
  }
}

TEST(Privilege, AUserHasNone) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool as_root = ::geteuid() != 0 || is_privileged();
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(77);
    ::_exit(as_root && !is_privileged() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace vramtrack

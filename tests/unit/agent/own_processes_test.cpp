// The view of a client in another pid namespace: its own processes by their pids there, and nothing of others.
#include "agent/server/own_processes.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "report/view_json.hpp"

namespace vramtrack::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

SeriesView process(std::uint32_t pid, std::uint32_t ns_pid, const std::string& command) {
  SeriesView s;
  s.key = {Metric::process_used, "GPU-a", pid, 7};
  s.device.id = "GPU-a";
  s.used_bytes = 5;
  s.process.emplace();
  s.process->pid = pid;
  s.process->start_ticks = 7;
  s.process->ns_pid = ns_pid;
  s.process->command = command;
  s.process->cgroup = "/kubepods/secret";
  return s;
}

/// A GPU with another user's leak, two processes of one container, one of another container, and one of the host.
View machine() {
  View view;
  SeriesView device;
  device.key = {Metric::device_used, "GPU-a", 0, 0};
  device.device.id = "GPU-a";
  device.used_bytes = 20;
  device.verdict.finding.because = "pid 4243 grows";
  device.verdict.suspect = Suspect{4243, 7, "secret.py", 1};
  device.alerts.emplace_back().finding.because = "pid 4243 grows";
  view.series = {device, process(4242, 12, "mine.py"), process(4243, 12, "secret.py"), process(4244, 13, "mine2.py"),
                 process(4245, 0, "host.py")};
  view.series[1].verdict.finding.because = "grows by much; pid 4243, whose memory had run out, still held";
  view.notices.push_back({{}, "pid 4243 was lost"});
  view.warnings.emplace_back("pid 4243 is strange");
  return view;
}

std::string container_of(const ProcessInfo& process) {
  return process.pid == 4243 ? "pid:[2]" : process.pid == 4245 ? "pid:[0]" : "pid:[1]";
}

TEST(OwnProcesses, AreThoseOfItsNamespaceByTheirPidsThere) {
  const View own = own_processes(machine(), "pid:[1]", container_of);
  ASSERT_THAT(own.series, SizeIs(3));
  EXPECT_EQ(own.series[0].used_bytes, 20U) << "how full the GPU is concerns all";
  EXPECT_EQ(own.series[1].key.pid, 12U);
  EXPECT_EQ(own.series[1].process->command, "mine.py");
  EXPECT_EQ(own.series[1].verdict.finding.because, "grows by much");
  EXPECT_EQ(own.series[2].key.pid, 13U);
}

TEST(OwnProcesses, NothingOfOthersIsInTheAnswer) {
  const std::string json = view_json(own_processes(machine(), "pid:[1]", container_of), {});
  EXPECT_THAT(json, HasSubstr("mine.py"));
  for (const char* const others : {"4243", "secret", "host.py", "4245"}) EXPECT_THAT(json, Not(HasSubstr(others)));
}

TEST(OwnProcesses, AClientWhoseNamespaceIsNotKnownHasNone) {
  EXPECT_THAT(own_processes(machine(), "?", container_of).series, SizeIs(1));
  EXPECT_THAT(own_processes(machine(), "", [](const ProcessInfo&) { return std::string(); }).series, SizeIs(1));
  EXPECT_THAT(own_processes(machine(), "pid:[0]", container_of).series, SizeIs(1)) << "the host's have no other pid";
}

TEST(OwnProcesses, AMarkMeansTheProcessOfThatPidThere) {
  EXPECT_EQ(process_of_client(machine(), 12, "pid:[1]", container_of)->pid, 4242U);
  EXPECT_EQ(process_of_client(machine(), 12, "pid:[2]", container_of)->pid, 4243U);
  EXPECT_FALSE(process_of_client(machine(), 4242, "pid:[1]", container_of));
  EXPECT_EQ(process_of_client(machine(), 4245, "", container_of)->pid, 4245U);
  EXPECT_FALSE(process_of_client(machine(), 12, "", container_of));
}

TEST(OwnProcesses, OurNamespaceIsKnown) {
  EXPECT_THAT(pid_namespace_of(static_cast<std::uint32_t>(::getpid())), testing::StartsWith("pid:["));
  EXPECT_EQ(pid_namespace_of(4294967295U), "");
}

}  // namespace
}  // namespace vramtrack::agent

// Messages about the end of a program among the readings of a log.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"
#include "source/log/messages.hpp"

namespace vramtrack {
namespace {

using logtest::read_text;
using testing::EndsWith;
using testing::SizeIs;

TEST(EndMessage, IsToldFromOtherLines) {
  for (const std::string_view line : {
           "2024-09-15 03:51:38,972 ERROR worker died with signal 9, restarting",
           "Mar 25 12:23:05 gpu01 systemd[1]: infer.service: Main process exited, code=killed, status=9/KILL",
           "Mar 25 12:23:05 gpu01 systemd[1]: infer.service: Scheduled restart job, restart counter is at 3.",
           "./train.sh: line 3:  4711 Killed                  python train.py",
           "Killed",
           "Segmentation fault (core dumped)",
           "torch.distributed.elastic.multiprocessing.api: failed (exitcode: -9) local_rank: 0 (pid: 4711) of binary: "
           "python",
           "  exitcode  : -9 (pid: 4711)",
           "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)",
           "container trainer exited with code 137",
           "    Reason:       OOMKilled",
           "slurmstepd: error: *** JOB 4711 ON node1 CANCELLED AT 2024-09-15T03:51:38 DUE TO TIME LIMIT ***",
           "(raylet) A worker died or was killed while executing a task by an unexpected system error.",
           "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
           "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.",
           "WORKER DIED, EXIT CODE 1",
           "sent sigkill to 4711",
           "[1]+  Terminated              python train.py",
           "KeyboardInterrupt",
           "Container trainer failed liveness probe, will be restarted",
           "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
           "systemd[1]: train.service: Failed with result 'exit-code'.",
           "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
           "Received SIGTERM, shutting down",
       })
    EXPECT_TRUE(reports_end(line)) << line;
  for (const std::string_view line : {"step 115 loss=1.9170 vram_used=1152 MiB",
                                      "signal to noise ratio 12.3",
                                      "loading checkpoint /ckpt/last.pt",
                                      "resuming training at step 4000",
                                      "existing cache found",
                                      "training started",
                                      "a skilled worker",
                                      "",
                                      "0, 8123 MiB, 24576 MiB",
                                      "eval.py finished with exit code 0",
                                      "evaluator (pid 991) exited with code 0",
                                      "process exited with status 0 (etl-job)",
                                      "Main process exited, code=exited, status=0/SUCCESS",
                                      "Restarting data iterator",
                                      "received signal SIGUSR1, writing checkpoint",
                                      "nothing killed, 0 workers restarting",
                                      "handler for SIGTERM registered",
                                      "retry policy: will restart on failure",
                                      "received signals: 0",
                                      "using SGDR warm restarts, restarting the cosine schedule",
                                      "health probe: exit code 0",
                                      "*** step 120: queue SIGNAL ok ***",
                                      "Killed 0 stale workers",
                                      "exit codes above 128 are signals",
                                      "timestamp, memory.used [MiB], exitcode"})
    EXPECT_FALSE(reports_end(line)) << line;
}

TEST(EndMessage, TellsThatTheHostEndedIt) {
  for (const std::string_view line :
       {"[ 1234.5] Out of memory: Killed process 4242 (python) total-vm:1kB, anon-rss:2kB",
        "Memory cgroup out of memory: Killed process 4242 (python) total-vm:100kB, anon-rss:200kB, file-rss:0kB",
        "State: Terminated Reason: OOMKilled Exit Code: 137", "slurmstepd: error: Detected 1 oom-kill event(s)"})
    EXPECT_TRUE(reports_end(line) && reports_host_kill(line)) << line;
  for (const std::string_view line :
       {"Command terminated: exited with code 137", "train.sh: line 3: 4242 Killed python",
        "DataLoader worker (pid 77) is killed by signal: Killed", "MemoryError"})
    EXPECT_FALSE(reports_host_kill(line)) << line;
  constexpr std::string_view kKilled = "Memory cgroup out of memory: Killed process 4242 (python)";
  EXPECT_EQ(pid_killed(kKilled), 4242U);
  EXPECT_EQ(pid_killed("OOMKilled"), 0U);
}

TEST(EndMessage, TheProcessThatTheKernelNamesEndedByTheHost) {
  std::string text = "timestamp,gpu_index,pid,used_gpu_memory_mib\n";
  const auto list = [&text](int from, int to, std::initializer_list<int> pids) {
    for (int i = from; i < to; ++i)
      for (const int pid : pids)
        text += "2026-03-01 10:00:" + std::to_string(i) + ",0," + std::to_string(pid) + ",900\n";
  };
  list(10, 20, {42, 77});
  text += "train.sh: line 3: 42 Killed python train.py\n";
  text += "Memory cgroup out of memory: Killed process 42 (python) total-vm:100kB, anon-rss:200kB, file-rss:0kB\n";
  list(20, 30, {77});
  const auto log = read_text(text);
  ASSERT_THAT(log.events, SizeIs(3)) << "the second message tells more than the first";
  EXPECT_FALSE(log.events[0].killed_by_host);
  EXPECT_TRUE(log.events[1].killed_by_host);
  EXPECT_EQ(log.events[1].pid, 0U) << "of the device";
  EXPECT_TRUE(log.events[2].killed_by_host);
  EXPECT_EQ(log.events[2].pid, 42U);
}

TEST(EndMessage, IsAnEventAfterTheLastReading) {
  const auto log = read_text(
      "worker died with signal 9\n"
      "2024-09-15 03:50:39 step 113 vram_used=21444 MiB\n"
      "2024-09-15 03:51:09 step 114 vram_used=21532 MiB\n"
      "2024-09-15 03:51:38 ERROR worker died with signal 9, restarting\n"
      "2024-09-15 03:51:38 ERROR exit code 137\n"
      "2024-09-15 03:51:39 step 115 vram_used=1152 MiB\n");
  ASSERT_THAT(log.samples, SizeIs(3));
  ASSERT_THAT(log.events, SizeIs(1)) << "none before the first reading, and one between two";
  EXPECT_EQ(log.events[0].kind, Event::Kind::process_ended);
  EXPECT_EQ(log.events[0].pid, 0U);
  EXPECT_EQ(log.events[0].time, log.samples[1].time + std::chrono::seconds{29}) << "its own";
  EXPECT_THAT(log.events[0].text, EndsWith("ERROR worker died with signal 9, restarting"));
}

}  // namespace
}  // namespace vramtrack

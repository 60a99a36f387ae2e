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
    EXPECT_TRUE(tells_end(line)) << line;
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
    EXPECT_FALSE(tells_end(line)) << line;
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
  EXPECT_EQ(log.events[0].time, log.samples[1].time + Duration{1});
  EXPECT_THAT(log.events[0].text, EndsWith("ERROR worker died with signal 9, restarting"));
}

}  // namespace
}  // namespace vramtrack

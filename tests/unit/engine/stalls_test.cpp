// Which processes count as stalled, in simulated time: the reports of the kernel and the driver, poll by poll.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/stall_facts.hpp"
#include "one_gpu.hpp"

namespace vramtrack {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

/// A process's activity in a poll of 30 s, and the driver's report about its GPU.
struct Look {
  double cpu_s = 0;                           ///< more
  std::optional<std::uint64_t> io_bytes = 0;  ///< more; nullopt: not readable
  double children_cpu_s = 0;                  ///< more
  std::optional<double> device_ratio = 0;     ///< of its GPU
  std::optional<double> own_ratio = {};       ///< of the process
  std::optional<double> memory_ratio = 0;     ///< of its GPU
  double watts = 400;                         ///< of 700
  std::uint64_t used_bytes = 8 * kGiB;
  ProcessProgress facts;  ///< facts that are not counters
};

/// An idle process without special properties or hidden files.
Look at_rest() {
  Look look;
  look.facts.state = 'S';
  look.facts.listening = ListeningSockets{};
  return look;
}

/// Processes, by default each on a GPU of its own.
class StalledProcesses : public testing::Test {
 protected:
  StalledProcesses() {
    engine_ = std::make_unique<Engine>(config_, catalog_);
    engine_->on_alert([this](const AlertChange& change) { changes_.push_back(change); });
  }

  std::uint32_t start(int gpu = 0, const std::string& command = "python train.py") {
    DeviceInfo device;
    device.id = "GPU-" + std::to_string(gpu);
    device.index = gpu;
    device.capacity_bytes = 80 * kGiB;
    catalog_.describe(device);
    ProcessInfo info;
    info.pid = 100 + static_cast<std::uint32_t>(processes_.size());
    info.start_ticks = 1;
    info.user = "ada";
    info.command = command;
    info.name = "python";
    catalog_.describe(info);
    processes_.push_back({info.pid, device.id, {}});
    return info.pid;
  }

  struct Process {
    std::uint32_t pid;
    std::string device;
    ProcessProgress counted;
  };

  Batch batch(const std::map<std::uint32_t, Look>& looks) {
    time_ += from_seconds(30);
    Batch out;
    std::map<std::string, std::uint64_t> used;
    for (const Process& p : processes_)
      if (looks.contains(p.pid)) used[p.device] += looks.at(p.pid).used_bytes;
    for (const auto& [device, bytes] : used)
      out.samples.push_back({time_, catalog_.intern({Metric::device_used, device, 0, 0}), bytes});
    for (Process& p : processes_) {
      const auto look = looks.find(p.pid);
      if (look == looks.end()) continue;
      const Look& l = look->second;
      const SeriesId series = catalog_.intern({Metric::process_used, p.device, p.pid, 1});
      out.samples.push_back({time_, series, l.used_bytes});
      DeviceReading reading{time_, p.device, l.device_ratio, {}, {}, {}};
      reading.gauges.memory_utilisation_ratio = l.memory_ratio;
      reading.gauges.power_watts = l.watts;
      reading.gauges.power_limit_watts = 700;
      out.readings.push_back(reading);
      out.loads.push_back({time_, series, ProcessLoad{l.own_ratio, 0.0, 1U}});
      p.counted.cpu_s += l.cpu_s;
      p.counted.children_cpu_s += l.children_cpu_s;
      ProgressReading told;
      told.time = time_;
      told.pid = p.pid;
      told.pid_start_ticks = 1;
      told.progress = l.facts;
      told.progress.cpu_s = p.counted.cpu_s;
      told.progress.children_cpu_s = p.counted.children_cpu_s;
      if (l.io_bytes) {
        p.counted.io_bytes = p.counted.io_bytes.value_or(0) + *l.io_bytes;
        told.progress.io_bytes = p.counted.io_bytes;
      }
      out.progress.push_back(told);
    }
    return out;
  }

  void feed(const std::map<std::uint32_t, Look>& looks) {
    engine_->ingest(batch(looks));
    engine_->finish();
  }
  /// Repeats the same polls for this many minutes.
  void pass(double minutes, const std::map<std::uint32_t, Look>& looks) {
    for (int i = 0; i < static_cast<int>(minutes * 2); ++i) feed(looks);
  }

  std::optional<Stall> stall_of(std::uint32_t pid) {
    const auto view = engine_->view();
    for (const SeriesView& s : view->series)
      if (s.key.pid == pid) return s.stall;
    return std::nullopt;
  }
  StallJudgement judgement_of(std::uint32_t pid) {
    const auto stall = stall_of(pid);
    EXPECT_TRUE(stall) << "pid " << pid;
    return stall ? stall->judgement : StallJudgement::unclear;
  }

  Config config_;
  Catalog catalog_;
  std::unique_ptr<Engine> engine_;
  std::vector<AlertChange> changes_;
  std::vector<Process> processes_;
  Timestamp time_{from_seconds(1e6)};
};

TEST_F(StalledProcesses, AWorkerThatDoesNothingForHalfAnHourIsStalled) {
  const auto pid = start();
  Look look = at_rest();
  look.facts.waits_in = "futex_wait_queue";
  pass(30, {{pid, look}});
  EXPECT_FALSE(stall_of(pid)) << "half an hour begins with the first look";
  feed({{pid, look}});
  const auto stall = stall_of(pid);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->judgement, StallJudgement::stalled);
  EXPECT_EQ(stall->cause, StallCause::waits);
  EXPECT_EQ(stall->stalled_for_s, 1800);
  EXPECT_EQ(stall->since, time_ - from_seconds(1800));
  EXPECT_EQ(stall->held_bytes, 8 * kGiB);
  EXPECT_DOUBLE_EQ(stall->confidence, 0.80);
  EXPECT_THAT(joined(stall->evidence), HasSubstr("it ran no kernel"));
  EXPECT_THAT(joined(stall->evidence), HasSubstr("futex_wait_queue"));

  ASSERT_EQ(changes_.size(), 1U);
  const Alert& alert = changes_[0].alert;
  EXPECT_EQ(alert.kind, AlertKind::stall);
  EXPECT_FALSE(alert.finding.leak);
  EXPECT_EQ(alert.finding.onset, stall->since);
  EXPECT_THAT(alert.finding.because, HasSubstr("it ran no kernel"));
  EXPECT_EQ(engine_->view()->stalls(StallJudgement::stalled).size(), 1U);
}

TEST_F(StalledProcesses, TheAlertEndsWithProgressOrWithTheProcess) {
  const auto pid = start();
  pass(31, {{pid, at_rest()}});
  Look works = at_rest();
  works.cpu_s = 10;
  feed({{pid, works}});
  ASSERT_EQ(changes_.size(), 2U);
  EXPECT_EQ(changes_[1].alert.ended, AlertEnd::resumed);
  EXPECT_FALSE(stall_of(pid));

  pass(31, {{pid, at_rest()}});
  ASSERT_EQ(changes_.size(), 3U);
  Batch end;
  end.events.push_back(Event{.time = time_, .kind = Event::Kind::process_ended, .pid = pid, .pid_start_ticks = 1});
  engine_->ingest(end);
  ASSERT_EQ(changes_.size(), 4U);
  EXPECT_EQ(changes_[3].alert.ended, AlertEnd::process_ended);
  EXPECT_TRUE(engine_->view()->stalls(StallJudgement::stalled).empty());
  EXPECT_EQ(engine_->view()->series.back().alerts.size(), 2U) << "they stay";
}

TEST_F(StalledProcesses, WhatRestsByItsNatureIsNeverStalled) {
  std::map<std::uint32_t, Look> looks;
  const auto add = [&](auto change) {
    Look look = at_rest();
    change(look.facts);
    const auto pid = start(static_cast<int>(looks.size()), "python x" + std::to_string(looks.size()));
    looks[pid] = look;
    return pid;
  };
  const auto kernel = add([](ProcessProgress& p) {
    p.nature = ProcessNature::notebook;
    p.what = "Jupyter kernel";
  });
  add([](ProcessProgress& p) { p.nature = ProcessNature::model_server; });
  add([](ProcessProgress& p) { p.nature = ProcessNature::prompt; });
  add([](ProcessProgress& p) { p.nature = ProcessNature::display; });
  const auto server = add([](ProcessProgress& p) { p.listening = ListeningSockets{{8000}, 0, 2, 0}; });
  add([](ProcessProgress& p) { p.listening = ListeningSockets{{8000}, 0, 0, 0}; });
  add([](ProcessProgress& p) { p.listening = ListeningSockets{{}, 1, 0, 0}; });
  add([](ProcessProgress& p) { p.tracer_pid = 7; });
  add([](ProcessProgress& p) {
    p.nature = ProcessNature::model_server;
    p.state = 'T';
  });
  pass(3 * 60, looks);
  for (const auto& [pid, look] : looks) EXPECT_EQ(judgement_of(pid), StallJudgement::idle) << pid;
  EXPECT_THAT(changes_, IsEmpty());
  EXPECT_EQ(stall_of(kernel)->what, "Jupyter kernel");
  EXPECT_THAT(joined(stall_of(server)->evidence), HasSubstr("it listens on TCP port 8000, 2 clients are connected"));
}

TEST_F(StalledProcesses, AServerThatNoLongerReadsItsRequestsIsStalled) {
  const auto pid = start();
  Look look = at_rest();
  look.facts.listening = ListeningSockets{{8000}, 0, 3, 0};
  pass(60, {{pid, look}});
  EXPECT_EQ(judgement_of(pid), StallJudgement::idle);
  look.facts.listening->waiting = 2;
  pass(29, {{pid, look}});
  EXPECT_EQ(judgement_of(pid), StallJudgement::idle);
  pass(2, {{pid, look}});
  EXPECT_EQ(stall_of(pid)->cause, StallCause::unread_requests);
  EXPECT_EQ(changes_.size(), 1U);
}

TEST_F(StalledProcesses, EachKindOfProgressCounts) {
  using Change = void (*)(Look&);
  const std::vector<std::pair<const char*, Change>> kinds = {
      {"CPU time", [](Look& l) { l.cpu_s = 1; }},
      {"I/O", [](Look& l) { l.io_bytes = 1000; }},
      {"children", [](Look& l) { l.children_cpu_s = 3; }},
      {"GPU", [](Look& l) { l.device_ratio = 0.01; }},
      {"its own GPU share", [](Look& l) { l.own_ratio = 0.01; }},
      {"memory", [](Look& l) { l.used_bytes += 4096; }},
      {"work for a core", [](Look& l) { l.facts.state = 'R'; }},
      {"a child more", [](Look& l) { l.facts.children = 1; }},
  };
  for (const auto& [name, change] : kinds) {
    const auto pid = start(static_cast<int>(processes_.size()), std::string("python ") + name);
    pass(20, {{pid, at_rest()}});
    Look once = at_rest();
    change(once);
    feed({{pid, once}});
    pass(29, {{pid, at_rest()}});
    EXPECT_FALSE(stall_of(pid)) << name;
    pass(2, {{pid, at_rest()}});
    EXPECT_EQ(judgement_of(pid), StallJudgement::stalled) << name << ": " << joined(stall_of(pid)->evidence);
  }
}

// The CPU time of watchdog threads is not progress.
TEST_F(StalledProcesses, ThreadsThatOnlyLookAroundAreNoProgress) {
  const auto pid = start();
  Look look = at_rest();
  look.cpu_s = 0.1;
  look.io_bytes = 80;
  look.children_cpu_s = 0.3;
  pass(31, {{pid, look}});
  EXPECT_EQ(judgement_of(pid), StallJudgement::stalled);
}

TEST_F(StalledProcesses, WhatIsNotKnownTakesConfidenceAndTheAlert) {
  Look no_io = at_rest();
  no_io.io_bytes.reset();
  Look no_sockets = at_rest();
  no_sockets.facts.listening.reset();
  Look no_gpu = at_rest();
  no_gpu.device_ratio.reset();
  Look nothing = no_gpu;
  nothing.io_bytes.reset();
  nothing.facts.listening.reset();
  const auto a = start(0, "python a");
  const auto b = start(1, "python b");
  const auto c = start(2, "python c");
  const auto d = start(3, "python d");
  pass(31, {{a, no_io}, {b, no_sockets}, {c, no_gpu}, {d, nothing}});
  EXPECT_THAT(joined(stall_of(a)->evidence), HasSubstr("CAP_SYS_PTRACE"));
  EXPECT_THAT(joined(stall_of(b)->evidence), HasSubstr("whether it is a server cannot be determined"));
  EXPECT_THAT(joined(stall_of(c)->evidence), HasSubstr("whether its kernels ran is not known"));
  EXPECT_EQ(judgement_of(d), StallJudgement::unclear);
  EXPECT_THAT(changes_, IsEmpty());
}

// Two processes on one GPU, one of which works: the driver reports which process runs kernels, or it does not.
TEST_F(StalledProcesses, AGpuThatIsSharedTellsNothingUnlessTheDriverDoes) {
  const auto rests = start(0, "python a");
  const auto works = start(0, "python b");
  Look busy = at_rest();
  busy.device_ratio = 0.9;
  busy.cpu_s = 20;
  Look quiet = at_rest();
  quiet.device_ratio = 0.9;
  pass(31, {{rests, quiet}, {works, busy}});
  EXPECT_THAT(joined(stall_of(rests)->evidence), HasSubstr("is not known"));
  EXPECT_THAT(changes_, IsEmpty());
  busy.own_ratio = 0.9;  // a process that runs nothing is not listed
  pass(31, {{rests, quiet}, {works, busy}});
  EXPECT_EQ(judgement_of(rests), StallJudgement::stalled);
  EXPECT_FALSE(stall_of(works));
}

TEST_F(StalledProcesses, StatesThatTheKernelNames) {
  const auto stopped = start(0, "python a");
  const auto driver = start(1, "python b");
  const auto zombie = start(2, "python c");
  const auto frozen = start(3, "python d");
  const auto orphan = start(4, "python e");
  std::map<std::uint32_t, Look> looks;
  for (const Process& p : processes_) looks[p.pid] = at_rest();
  looks[stopped].facts.state = 'T';
  looks[driver].facts.state = 'D';
  looks[zombie].facts.state = 'Z';
  looks[zombie].facts.parent_pid = 42;
  looks[frozen].facts.frozen = true;
  looks[orphan].facts.orphaned = true;
  looks[orphan].facts.helper = true;
  pass(31, looks);
  EXPECT_EQ(stall_of(stopped)->cause, StallCause::stopped);
  EXPECT_THAT(joined(stall_of(stopped)->evidence), HasSubstr("kill -CONT"));
  EXPECT_EQ(stall_of(driver)->cause, StallCause::uninterruptible);
  EXPECT_EQ(stall_of(zombie)->cause, StallCause::exited);
  EXPECT_THAT(joined(stall_of(zombie)->evidence), HasSubstr("pid 42"));
  EXPECT_EQ(judgement_of(frozen), StallJudgement::unclear) << "whoever froze it thaws it";
  EXPECT_EQ(stall_of(orphan)->cause, StallCause::orphaned);
  EXPECT_GT(stall_of(orphan)->confidence, 0.9);
  EXPECT_EQ(changes_.size(), 4U);
}

TEST_F(StalledProcesses, WhatAPolicyHoldsIsNotUntilItIsLetGo) {
  const auto pid = start();
  Look held = at_rest();
  held.facts.state = 'T';
  held.facts.held_by_policy = true;
  pass(90, {{pid, held}});
  EXPECT_FALSE(stall_of(pid)) << "the policy's own act is no evidence";
  const Look rests = at_rest();
  pass(29, {{pid, rests}});
  EXPECT_FALSE(stall_of(pid)) << "the time that it was held does not count";
  pass(2, {{pid, rests}});
  EXPECT_EQ(judgement_of(pid), StallJudgement::stalled);
  EXPECT_EQ(changes_.size(), 1U);
}

TEST_F(StalledProcesses, AnAlertOutlastsThatAPolicyHoldsIt) {
  const auto pid = start();
  Look look = at_rest();
  pass(31, {{pid, look}});
  ASSERT_EQ(changes_.size(), 1U);
  look.facts.state = 'T';
  look.facts.held_by_policy = true;
  pass(10, {{pid, look}});
  EXPECT_EQ(changes_.size(), 1U) << "it is the evidence of the act";
  EXPECT_EQ(judgement_of(pid), StallJudgement::stalled);
}

// A watch without CPU time cannot know that others are idle.
TEST_F(StalledProcesses, TheTimeByWhichALookIsLateDoesNotCount) {
  const auto pid = start();
  for (int i = 0; i < 60; ++i) {
    time_ += from_seconds(60);
    feed({{pid, at_rest()}});
  }
  EXPECT_FALSE(stall_of(pid)) << "90 minutes in looks that are a minute late";
  feed({{pid, at_rest()}});
  EXPECT_EQ(stall_of(pid)->cause, StallCause::waits) << "half an hour in looks";
}

// Time for which the process's rest was explained proves nothing: a server that closes its port has just been active,
// and on a busy machine this may be visible between that and its end.
TEST_F(StalledProcesses, TheHalfHourBeginsWhenTheLastExplanationEnds) {
  using Explain = void (*)(ProcessProgress&);
  const std::vector<std::pair<const char*, Explain>> explained = {
      {"serves",
       [](ProcessProgress& p) {
         p.listening = ListeningSockets{{8000}, 0, 0, 0};
       }},
      {"at a prompt", [](ProcessProgress& p) { p.nature = ProcessNature::prompt; }},
      {"under a debugger", [](ProcessProgress& p) { p.tracer_pid = 7; }},
      {"frozen", [](ProcessProgress& p) { p.frozen = true; }},
  };
  for (const auto& [name, explain] : explained) {
    for (const char state : {'S', 'T', 'Z'}) {
      const auto pid = start(static_cast<int>(processes_.size()), fmt::format("python {}", processes_.size()));
      Look rests = at_rest();
      explain(rests.facts);
      pass(60, {{pid, rests}});
      EXPECT_NE(judgement_of(pid), StallJudgement::stalled) << name;
      Look without = at_rest();
      without.facts.state = state;
      if (state == 'Z') without.facts.listening.reset();
      pass(29, {{pid, without}});
      EXPECT_FALSE(stall_of(pid)) << name << ", then " << state;
      pass(2, {{pid, without}});
      EXPECT_EQ(judgement_of(pid), StallJudgement::stalled) << name << ", then " << state;
    }
  }
  EXPECT_EQ(std::count_if(changes_.begin(), changes_.end(),
                          [](const AlertChange& change) { return change.news == AlertNews::raised; }),
            12);
}

// A process that hung and is then stopped has hung all the time.
TEST_F(StalledProcesses, WhatExplainsNothingThatWasBeforeChangesNothing) {
  const auto pid = start();
  pass(31, {{pid, at_rest()}});
  Look stopped = at_rest();
  stopped.facts.state = 'T';
  feed({{pid, stopped}});
  EXPECT_EQ(stall_of(pid)->cause, StallCause::stopped);
  EXPECT_EQ(changes_.size(), 1U);
}

TEST_F(StalledProcesses, AJobThatSlurmSuspendedIsNot) {
  const auto pid = start();
  ProcessInfo info = *catalog_.process(pid, 1);
  info.slurm_job = "1234.0";
  catalog_.describe(info);
  Look look = at_rest();
  look.facts.state = 'T';
  pass(31, {{pid, look}});
  EXPECT_EQ(judgement_of(pid), StallJudgement::unclear);
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(StalledProcesses, AForegroundProgramAndATaskOfABusyParentAreUnclear) {
  const auto shell = start(0, "python a");
  const auto task = start(1, "python b");
  Look before_somebody = at_rest();
  before_somebody.facts.foreground = true;
  Look waits_for_task = at_rest();
  waits_for_task.facts.parent_pid = 9;
  waits_for_task.facts.parent_cpu_s = 0;
  for (int i = 0; i < 62; ++i) {
    waits_for_task.facts.parent_cpu_s = *waits_for_task.facts.parent_cpu_s + 10;
    feed({{shell, before_somebody}, {task, waits_for_task}});
  }
  EXPECT_LT(stall_of(shell)->confidence, 0.75);
  EXPECT_EQ(judgement_of(task), StallJudgement::unclear);
  EXPECT_THAT(changes_, IsEmpty());
}

// --- ranks -----------------------------------------------------------------------------------------------------------

/// As NCCL's kernels wait: the GPU is busy, its memory is not, and the process spins on a core.
Look in_collective() {
  Look look = at_rest();
  look.device_ratio = 1.0;
  look.memory_ratio = 0.0;
  look.watts = 120;
  look.cpu_s = 30;
  return look;
}

TEST_F(StalledProcesses, ARankThatRestsWhileItsSiblingsAreBusyIsTheOne) {
  std::map<std::uint32_t, Look> looks;
  for (int gpu = 0; gpu < 4; ++gpu)
    looks[start(gpu, "python train.py --rank " + std::to_string(gpu))] = in_collective();
  const std::uint32_t hangs = looks.begin()->first;
  looks[hangs] = at_rest();
  pass(31, looks);
  const auto stall = stall_of(hangs);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->judgement, StallJudgement::stalled);
  EXPECT_DOUBLE_EQ(stall->confidence, 0.92);
  EXPECT_THAT(joined(stall->evidence), HasSubstr("3 of its 3 siblings of the same job are busy"));
  for (const auto& [pid, look] : looks) {
    if (pid == hangs) continue;
    EXPECT_EQ(judgement_of(pid), StallJudgement::unclear) << "they wait for it";
  }
  ASSERT_EQ(changes_.size(), 1U);
}

TEST_F(StalledProcesses, AllRanksInACollectiveAreStalledTogether) {
  std::map<std::uint32_t, Look> looks;
  for (int gpu = 0; gpu < 4; ++gpu)
    looks[start(gpu, "python train.py --rank " + std::to_string(gpu))] = in_collective();
  pass(31, looks);
  for (const auto& [pid, look] : looks) {
    EXPECT_EQ(stall_of(pid)->cause, StallCause::collective);
    EXPECT_EQ(judgement_of(pid), StallJudgement::stalled);
    EXPECT_DOUBLE_EQ(stall_of(pid)->confidence, 0.88);
    EXPECT_THAT(joined(stall_of(pid)->evidence), HasSubstr("which one is the cause cannot be determined"));
  }
  EXPECT_EQ(changes_.size(), 4U);
}

// A healthy job looks the same except for its use of the GPU's memory.
TEST_F(StalledProcesses, RanksThatTrainAreNot) {
  std::map<std::uint32_t, Look> looks;
  for (int gpu = 0; gpu < 4; ++gpu) {
    Look look = in_collective();
    look.memory_ratio = 0.4;
    look.watts = 600;
    looks[start(gpu, "python train.py --rank " + std::to_string(gpu))] = look;
  }
  pass(120, looks);
  for (const auto& [pid, look] : looks) EXPECT_FALSE(stall_of(pid));
  for (auto& [pid, look] : looks) look.memory_ratio.reset();
  pass(120, looks);
  for (const auto& [pid, look] : looks) EXPECT_FALSE(stall_of(pid)) << "without that figure nothing can be told";
}

TEST_F(StalledProcesses, ABusyLoopIsUnclearAloneAndLikelyBesideSiblings) {
  Look spins = at_rest();
  spins.cpu_s = 29;
  const auto alone = start(0, "python alone.py");
  pass(31, {{alone, spins}});
  EXPECT_EQ(judgement_of(alone), StallJudgement::unclear);
  EXPECT_EQ(stall_of(alone)->cause, StallCause::busy_loop);

  std::map<std::uint32_t, Look> looks;
  for (int gpu = 1; gpu < 4; ++gpu)
    looks[start(gpu, "python train.py --rank " + std::to_string(gpu))] = in_collective();
  const std::uint32_t rank = looks.begin()->first;
  looks[rank] = spins;
  pass(31, looks);
  EXPECT_EQ(judgement_of(rank), StallJudgement::stalled);
  EXPECT_THAT(changes_, IsEmpty()) << "nobody is woken up for it";
}

// --- the rest --------------------------------------------------------------------------------------------------------

// A machine that slept: the clock continued, but no process could.
TEST_F(StalledProcesses, AGapBeginsAnew) {
  const auto pid = start();
  pass(20, {{pid, at_rest()}});
  time_ += from_seconds(8 * 3600);
  feed({{pid, at_rest()}});
  EXPECT_FALSE(stall_of(pid));
  pass(29, {{pid, at_rest()}});
  EXPECT_FALSE(stall_of(pid));
  pass(2, {{pid, at_rest()}});
  EXPECT_TRUE(stall_of(pid));
}

TEST_F(StalledProcesses, AnAlertOfAnEarlierWatchStandsUntilSomethingMoves) {
  const auto pid = start();
  feed({{pid, at_rest()}});
  Alert earlier;
  earlier.kind = AlertKind::stall;
  earlier.series = catalog_.intern({Metric::process_used, "GPU-0", pid, 1});
  earlier.raised = time_ - from_seconds(600);
  engine_->adopt(earlier);
  pass(60, {{pid, at_rest()}});
  EXPECT_THAT(changes_, IsEmpty()) << "it stands already";
  Look works = at_rest();
  works.cpu_s = 10;
  feed({{pid, works}});
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_EQ(changes_[0].news, AlertNews::cleared);
  EXPECT_EQ(changes_[0].alert.raised, earlier.raised);
}

TEST_F(StalledProcesses, NothingIsLookedAtWithZeroMinutes) {
  config_.stall.minutes = 0;
  engine_ = std::make_unique<Engine>(config_, catalog_);
  const auto pid = start();
  Batch one = batch({{pid, at_rest()}});
  one.progress.clear();  // as the live loop then leaves it
  engine_->ingest(one);
  EXPECT_FALSE(stall_of(pid));
}

// A process with any progress within the window, however little above that of idle threads, is never stalled. The order
// of the processes within a poll never makes a difference.
TEST(StalledProperty, AnyProgressInTheWindowIsNoStall) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    StallFacts facts;
    facts.now.state = "SDTRZ"[below(5)];
    facts.now.nature = static_cast<ProcessNature>(below(6));
    facts.now.orphaned = below(2) == 0;
    facts.now.helper = below(2) == 0;
    facts.now.frozen = below(4) == 0;
    if (below(3) != 0) facts.now.listening = ListeningSockets{{}, 0, 0, static_cast<std::uint32_t>(below(2))};
    const double window_s = 1800;
    for (double* quiet : {&facts.cpu_quiet_s, &facts.io_quiet_s, &facts.children_quiet_s, &facts.memory_quiet_s,
                          &facts.gpu_quiet_s, &facts.in_state_s, &facts.requests_wait_s, &facts.parent_quiet_s})
      *quiet = 1800 + below(10000);
    facts.knows_io = below(2) == 0;
    facts.knows_gpu = below(2) == 0;
    facts.peers = static_cast<std::uint32_t>(below(4));
    facts.peers_work = facts.peers == 0 ? 0 : static_cast<std::uint32_t>(below(static_cast<int>(facts.peers) + 1));
    ASSERT_TRUE(judge_stall(facts, window_s)) << "nothing moved";
    const auto stall = *judge_stall(facts, window_s);
    EXPECT_GE(stall.stalled_for_s, window_s);
    EXPECT_FALSE(stall.evidence.empty());
    double* const moved[] = {&facts.cpu_quiet_s, &facts.io_quiet_s, &facts.children_quiet_s, &facts.memory_quiet_s,
                             &facts.gpu_quiet_s};
    *moved[below(5)] = below(1800);
    EXPECT_FALSE(judge_stall(facts, window_s)) << "something moved";
  }
}

TEST_F(StalledProcesses, TheOrderOfTheReadingsMakesNoDifference) {
  std::mt19937 random(11);
  std::vector<std::uint32_t> pids;
  for (int i = 0; i < 6; ++i) pids.push_back(start(i / 2, "python train.py"));
  Engine other(config_, catalog_);
  for (int i = 0; i < 200; ++i) {
    std::map<std::uint32_t, Look> looks;
    for (const std::uint32_t pid : pids) {
      Look look = at_rest();
      if (random() % 40 == 0) look.cpu_s = 5;
      if (pid % 2 == 0) look.device_ratio = 1.0;
      looks[pid] = look;
    }
    Batch one = batch(looks);
    engine_->ingest(one);
    std::reverse(one.progress.begin(), one.progress.end());
    std::reverse(one.loads.begin(), one.loads.end());
    other.ingest(one);
    const auto a = engine_->view();
    const auto b = other.view();
    for (std::size_t k = 0; k < a->series.size(); ++k)
      ASSERT_EQ(a->series[k].stall, b->series[k].stall) << "look " << i;
  }
}

}  // namespace
}  // namespace vramtrack

// Which processes reclaim ends and which it spares, and that each signal is justified and recorded.
#include "act/reclaim.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "../temp_folder.hpp"
#include "victim.hpp"

namespace vramtrack::act {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Holder orphan() {
  Holder holder;
  holder.info.pid = 4242;
  holder.info.start_ticks = 7;
  holder.info.user = "ada";
  holder.state = HolderState::orphaned;
  holder.is_worker = true;
  return holder;
}

const ReclaimBounds kAda{"ada", {}, false, {900, 901}};

TEST(Reclaim, OnlyAWorkerWhoseParentHasEndedMayBeEnded) {
  EXPECT_EQ(why_spared(orphan(), kAda), "");
  Holder program = orphan();
  program.is_worker = false;
  EXPECT_THAT(why_spared(program, kAda), HasSubstr("left to run on purpose"));
  Holder kept = orphan();
  kept.kept = "pid 7 (server) is connected to it";
  EXPECT_EQ(why_spared(kept, kAda), "its parent has ended, but pid 7 (server) is connected to it");
  for (const HolderState state : {HolderState::alive, HolderState::service, HolderState::zombie,
                                  HolderState::uninterruptible, HolderState::not_visible}) {
    Holder other = orphan();
    other.state = state;
    EXPECT_NE(why_spared(other, kAda), "") << to_string(state);
  }
}

TEST(Reclaim, NeverInitNorWhoeverStartedIt) {
  for (const std::uint32_t pid : {0U, 1U, 900U, 901U}) {
    Holder holder = orphan();
    holder.info.pid = pid;
    EXPECT_NE(why_spared(holder, kAda), "") << pid;
  }
  EXPECT_TRUE(self_and_above("/proc", static_cast<std::uint32_t>(::getpid()))
                  .contains(static_cast<std::uint32_t>(::getppid())));
}

TEST(Reclaim, OtherUsersOnlyWhereRootNamesThem) {
  Holder holder = orphan();
  holder.info.user = "bob";
  EXPECT_THAT(why_spared(holder, kAda), HasSubstr("--user"));
  EXPECT_NE(why_spared(holder, {"ada", {"bob"}, false, {}}), "") << "ada is not root";
  EXPECT_NE(why_spared(holder, {"root", {}, true, {}}), "");
  EXPECT_EQ(why_spared(holder, {"root", {"bob"}, true, {}}), "");
  holder.info.user.clear();
  EXPECT_NE(why_spared(holder, {"", {""}, true, {}}), "");
}

struct Acts {
  /// `slept`: the share of each sleep that really passes.
  ReclaimTools tools(double slept = 0.1) const {
    ReclaimTools out;
    out.now = [] { return Timestamp{}; };
    out.sleep = [slept](double s) { ::usleep(static_cast<useconds_t>(s * slept * 1e6)); };
    out.patience_s = 2;
    out.watch_s = 3;
    return out;
  }
  Result<std::string> run(const Subject& target) { return run(target, tools()); }
  Result<std::string> run(const Subject& target, const ReclaimTools& tools) {
    auto journal = Journal::open(path);
    EXPECT_TRUE(journal);
    return reclaim(target, signs_of_life({target}, tools).front(), tools, *journal);
  }
  [[nodiscard]] std::vector<std::string> events() const {
    std::vector<std::string> out;
    const std::vector<AuditEntry> entries = read_audit(path).value();
    for (const AuditEntry& e : entries) out.push_back(e.action.empty() ? e.event : e.action + ' ' + e.event);
    return out;
  }
  TempFolder folder;
  std::string path = folder.file("acts.jsonl");
};

TEST(Reclaim, TermIsEnoughForMost) {
  const Victim victim(false);
  Acts acts;
  const auto said = acts.run(victim.subject());
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(*said, "it ended after SIGTERM");
  EXPECT_THAT(acts.events(), ElementsAre("begin", "terminate intent", "terminate done", "end"));
}

TEST(Reclaim, WhoeverIgnoresTermIsKilled) {
  const Victim victim(true);
  Acts acts;
  const auto said = acts.run(victim.subject());
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(*said, "it ended after SIGKILL");
  EXPECT_EQ(victim.term(), 1);
  EXPECT_THAT(acts.events(),
              ElementsAre("begin", "terminate intent", "terminate done", "kill intent", "kill done", "end"));
}

TEST(Reclaim, AReusedPidIsNeverSignalled) {
  const Victim victim(true);
  Acts acts;
  Subject target = victim.subject();
  target.process.start_ticks += 1;
  const auto said = acts.run(target);
  ASSERT_FALSE(said);
  EXPECT_THAT(said.error().message, HasSubstr("another process now"));
  EXPECT_EQ(victim.term(), 0);
  EXPECT_TRUE(victim.becomes("S"));
  EXPECT_THAT(acts.events(), ElementsAre("begin", "terminate intent", "terminate failed", "end"));
}

TEST(Reclaim, WhatHasEndedAndIsNotReapedGetsNoSignal) {
  const Victim victim(false);
  ::kill(static_cast<pid_t>(victim.pid()), SIGKILL);
  ASSERT_TRUE(victim.becomes("?"));
  Acts acts;
  const auto said = acts.run(victim.subject());
  ASSERT_FALSE(said);
  EXPECT_THAT(said.error().message, HasSubstr("has ended: it only waits for its parent to reap it"));
  EXPECT_THAT(acts.events(), ElementsAre("begin", "terminate intent", "terminate failed", "end"));
}

/// Runs `work` repeatedly until the object is destroyed.
class Busy {
 public:
  explicit Busy(const std::function<void()>& work) : pid_(::fork()) {
    while (pid_ == 0) work();
    std::string path;
    target_.process.pid = static_cast<std::uint32_t>(pid_);
    if (const auto alive = process_alive("/proc", target_.process.pid, path))
      target_.process.start_ticks = alive->start_ticks;
  }
  ~Busy() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  [[nodiscard]] const Subject& subject() const { return target_; }
  [[nodiscard]] bool is_alive() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_;
  Subject target_;
};

TEST(Reclaim, WhatReadsOrWritesIsInUse) {
  const int zero = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  const Busy busy([zero] {
    char byte = 0;
    if (::read(zero, &byte, 1) != 1) ::_exit(1);
    ::usleep(1000);
  });
  Acts acts;
  const auto said = acts.run(busy.subject());
  ASSERT_FALSE(said);
  EXPECT_THAT(said.error().message, HasSubstr("left alone: it, or a process that it started, read or wrote within 2s"));
  EXPECT_THAT(acts.events(), ElementsAre("begin", "end"));
  EXPECT_TRUE(busy.is_alive());
  ::close(zero);
}

/// A folder used as /proc, with the process's `cpu_s` and written `bytes` after so many seconds of watching.
struct Watched {
  void write(const TempFolder& proc, double at_s) const {
    const std::string folder = proc.file(std::to_string(pid));
    std::filesystem::create_directories(fmt::format("{}/task/{}", folder, pid));
    const std::string stat =
        fmt::format("{} (python) R 1 77 77 0 -1 0 0 0 0 0 {:.0f} 0 0 0 20 0 1 0 5 0 0\n", pid, cpu_s(at_s) * 100);
    std::ofstream(folder + "/stat") << stat;
    std::ofstream(fmt::format("{}/task/{}/stat", folder, pid)) << stat;
    std::ofstream(folder + "/io") << "rchar: 5\nwchar: " << bytes(at_s) << '\n';
    std::ofstream(proc.file("uptime")) << 1000 + at_s << " 0\n";
  }
  std::uint32_t pid;
  std::function<double(double)> cpu_s;
  std::function<int(double)> bytes;
};

TEST(Reclaim, AllAreWatchedAtOnceUntilTheyMayHaveWrittenTheirLogs) {
  const TempFolder proc;
  const auto computes = [](double at_s) { return 9 + at_s; };
  const auto nothing = [](double) { return 5; };
  // On an overloaded machine, a working process and a spinning one look alike as long as neither gets a core.
  const Watched all[] = {{77, computes, [](double at_s) { return at_s < 45 ? 5 : 50; }},
                         {78, computes, nothing},
                         {79, [](double) { return 9.0; }, nothing}};
  double slept_s = 0;
  const auto write = [&] {
    for (const Watched& one : all) one.write(proc, slept_s);
  };
  write();
  ReclaimTools tools = Acts().tools();
  tools.act.proc_root = proc.path();
  tools.watch_s = ReclaimTools().watch_s;
  tools.sleep = [&](double s) {
    slept_s += s;
    write();
  };
  std::vector<Subject> targets(3);
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i].process = {all[i].pid, 5, {}};
  EXPECT_THAT(signs_of_life(targets, tools), ElementsAre("it, or a process that it started, read or wrote within 1m",
                                                         "", "it got no CPU time within 1m"));
  EXPECT_EQ(slept_s, 65);
}

TEST(Reclaim, WhatShowsLifeIsLeftAloneAndRecorded) {
  const Victim victim(false);
  Acts acts;
  const ReclaimTools tools = acts.tools();
  {
    auto journal = Journal::open(acts.path);
    ASSERT_TRUE(journal);
    const auto said = reclaim(victim.subject(), "it got no CPU time within 3s", tools, *journal);
    ASSERT_FALSE(said);
    EXPECT_EQ(said.error().message, "left alone: it got no CPU time within 3s");
  }
  EXPECT_EQ(victim.term(), 0);
  EXPECT_THAT(acts.events(), ElementsAre("begin", "end"));
}

TEST(Reclaim, WhatOnlySpinsIsNot) {
  const Busy busy([] {
    volatile int i = 0;
    while (i < 1000) {
      const int next = i + 1;
      i = next;
    }
  });
  Acts acts;
  const auto said = acts.run(busy.subject(), acts.tools(0.5));
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(*said, "it ended after SIGTERM");
}

}  // namespace
}  // namespace vramtrack::act

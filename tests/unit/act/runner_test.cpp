#include "act/runner.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/syscall.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "../temp_folder.hpp"
#include "act/kubernetes.hpp"
#include "site.hpp"
#include "subjects.hpp"
#include "victim.hpp"

namespace vramtrack::act {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string policy_for(const Victim& victim, const std::string& steps) {
  return fmt::format("[[policy]]\nname = \"a\"\nwhen = {{ user = \"{}\" }}\nsteps = [{}]\n", victim.subject().user,
                     steps);
}

RunnerOptions options_of(const std::string& toml, const std::string& folder) {
  RunnerOptions options;
  options.policies = policies_of(toml);
  options.config = acting();
  options.config.max_acts_per_hour = 100;
  options.audit_path = folder + "/store.db.acts.jsonl";
  options.off_file = folder + "/off";
  options.boot_id = "boot";
  options.own_user = "nobody-else";
  options.now = [] { return at(0); };
  return options;
}

std::vector<std::string> events_of(const std::string& folder) {
  std::vector<std::string> out;
  const auto entries = read_audit(folder + "/store.db.acts.jsonl");
  if (entries)
    for (const AuditEntry& e : *entries) out.push_back(e.action.empty() ? e.event : e.action + " " + e.event);
  return out;
}

const char* const kRungs = R"({ do = "checkpoint", signal = "USR1" }, { do = "freeze", after = "1s" },
  { do = "terminate", after = "1s" }, { do = "kill", after = "2s" })";

void climb(Runner& runner, const Victim& victim, int from_s, int to_s) {
  for (int t = from_s; t < to_s; ++t) {
    runner.see(seen_of(victim, victim.subject(), t));
    ASSERT_TRUE(runner.wait_for_orders(60));
  }
}

TEST(Runner, APersonClosesTheBreakerAndTheRecordSaysWho) {
  const TempFolder folder;
  RunnerOptions options = options_of("", folder.path());
  options.config.dry_run = true;
  {
    auto journal = Journal::open(options.audit_path);
    AuditEntry opened;
    opened.event = "breaker_opened";
    opened.climb = "breaker";
    opened.time = opened.written = at(0);
    opened.text = "5 nodes at once";
    ASSERT_TRUE(journal && journal->append(opened, true));
  }
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner) << runner.error().message;
  EXPECT_EQ((*runner)->state().breaker->why, "5 nodes at once");
  const auto closed = (*runner)->close_breaker("alice: looked");
  EXPECT_TRUE(closed && *closed);
  EXPECT_FALSE((*runner)->state().breaker);
  EXPECT_FALSE(*(*runner)->close_breaker("alice")) << "it was not open";
  EXPECT_THAT((*runner)->take_messages(),
              testing::Contains(testing::HasSubstr("(5 nodes at once) was closed by alice: looked")));
}

TEST(Runner, ClimbsFromACheckpointToAKillOnARealProcess) {
  const TempFolder folder;
  const Victim victim(true);
  auto runner = Runner::open(options_of(policy_for(victim, kRungs), folder.path()));
  ASSERT_TRUE(runner) << runner.error().message;
  climb(**runner, victim, 0, 3);
  EXPECT_TRUE(victim.becomes("T"));
  climb(**runner, victim, 3, 6);
  victim.handles_term();
  EXPECT_EQ(victim.usr1(), 1);
  climb(**runner, victim, 6, 15);
  EXPECT_TRUE(victim.becomes("?"));
  climb(**runner, victim, 15, 20);
  EXPECT_EQ(victim.term(), 1);
  EXPECT_THAT(events_of(folder.path()),
              ElementsAre("begin", "checkpoint intent", "checkpoint done", "freeze intent", "freeze done",
                          "terminate intent", "terminate done", "freeze undone", "kill intent", "kill done", "end"));
  const ActsState state = (*runner)->state();
  EXPECT_TRUE(state.climbs.empty());
  EXPECT_THAT(state.acts.back().text, HasSubstr("were freed"));
}

TEST(Runner, ADryRunSaysWhatItWouldDoAndDoesNothing) {
  const TempFolder folder;
  const Victim victim(true);
  RunnerOptions options = options_of(policy_for(victim, kRungs), folder.path());
  options.config.dry_run = true;
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner) << runner.error().message;
  climb(**runner, victim, 0, 12);
  EXPECT_EQ(victim.usr1() + victim.term(), 0);
  EXPECT_TRUE(victim.becomes("S"));
  EXPECT_THAT(events_of(folder.path()), ElementsAre("begin", "checkpoint would", "freeze would", "terminate would",
                                                    "freeze would_undo", "kill would"));
  const auto entries = read_audit(folder.path() + "/store.db.acts.jsonl");
  EXPECT_THAT((*entries)[3].text, HasSubstr(fmt::format("send SIGTERM to pid {}", victim.pid())));
}

TEST(Runner, AReusedPidIsNeverSignalled) {
  const TempFolder folder;
  const Victim victim(true);
  auto runner = Runner::open(options_of(policy_for(victim, R"({ do = "kill" })"), folder.path()));
  ASSERT_TRUE(runner);
  Subject other = victim.subject();
  other.process.start_ticks += 1;
  (*runner)->see(seen(0, {other}));
  ASSERT_TRUE((*runner)->wait_for_orders(60));
  EXPECT_TRUE(victim.becomes("S"));
  EXPECT_THAT(events_of(folder.path()), ElementsAre("begin", "kill refused"));
}

TEST(Runner, ARealUserWhomThePolicyDoesNotNameIsRefusedWhateverTheViewSays) {
  const TempFolder folder;
  const Victim victim(true);
  auto runner = Runner::open(options_of(
      "[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"kill\" }]\n", folder.path()));
  ASSERT_TRUE(runner);
  Subject claimed = victim.subject();
  claimed.user = "alice";
  (*runner)->see(seen(0, {claimed}));
  ASSERT_TRUE((*runner)->wait_for_orders(60));
  EXPECT_TRUE(victim.becomes("S"));
  EXPECT_THAT((*runner)->state().acts.back().text, HasSubstr("a user that the policy does not name"));
}

TEST(Runner, TheOffFileStopsEverythingAndThaws) {
  const TempFolder folder;
  const Victim victim(true);
  auto runner = Runner::open(
      options_of(policy_for(victim, R"({ do = "freeze" }, { do = "kill", after = "5s" })"), folder.path()));
  ASSERT_TRUE(runner);
  climb(**runner, victim, 0, 2);
  EXPECT_TRUE(victim.becomes("T"));
  ASSERT_TRUE((*runner)->switch_off(true, "by alice"));
  climb(**runner, victim, 2, 12);
  EXPECT_TRUE(victim.becomes("S"));
  EXPECT_TRUE((*runner)->state().off);
  EXPECT_THAT(events_of(folder.path()), ElementsAre("begin", "freeze intent", "freeze done", "freeze undone", "end"));
  ASSERT_TRUE((*runner)->switch_off(false, "by alice"));
  climb(**runner, victim, 12, 20);
  EXPECT_TRUE(victim.becomes("?"));
}

/// An API server with one pod and a PodDisruptionBudget that forbids its eviction as long as the test wants it to.
class OnePod {
 public:
  Tools tools() {
    Tools out;
    out.node = "node1";
    out.kubernetes.ask = [this](const std::string& method, const std::string&) -> Result<KubernetesAnswer> {
      const std::lock_guard lock(mutex_);
      KubernetesAnswer answer;
      answer.status = 200;
      if (method == "GET") {
        answer.body = R"({"items": [{"metadata": {"uid": "pod-1", "name": "train", "namespace": "ml",
                          "ownerReferences": [{"kind": "Job", "controller": true}]},
                          "status": {"containerStatuses": [{"name": "c", "containerID": "containerd://c-1"}]}}]})";
        return answer;
      }
      ++asked_;
      answer.status = forbids_ ? 429 : 201;
      answer.retry_after_s = 0.02;
      answer.body = "{}";
      return answer;
    };
    return out;
  }
  void allow() {
    const std::lock_guard lock(mutex_);
    forbids_ = false;
  }
  [[nodiscard]] int asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  /// Waits until it was asked this often, at most ten seconds.
  [[nodiscard]] bool is_asked(int times) const {
    for (int i = 0; i < 10'000 && asked() < times; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return asked() >= times;
  }

 private:
  mutable std::mutex mutex_;
  bool forbids_ = true;
  int asked_ = 0;
};

std::string evicting(const Victim& victim, const char* timeout) {
  return fmt::format(
      "[[policy]]\nname = \"evict\"\nwhen = {{ container = \"c-1\", user = \"{}\" }}\n"
      "steps = [{{ do = \"evict\", timeout = \"{}\" }}]\n",
      victim.subject().user, timeout);
}

Subject in_pod(const Victim& victim) {
  Subject subject = victim.subject();
  subject.pod = "pod-1";
  subject.container = "c-1";
  return subject;
}

TEST(Runner, AnEvictionThatIsForbiddenForNowKeepsNobodyWaiting) {
  const TempFolder folder;
  const Victim evicted(false), killed(false);
  OnePod server;
  RunnerOptions options = options_of(
      evicting(evicted, "1h") +
          fmt::format("[[policy]]\nname = \"kill\"\nwhen = {{ user = \"{}\" }}\nsteps = [{{ do = \"kill\" }}]\n",
                      killed.subject().user),
      folder.path());
  options.tools = server.tools();
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  (*runner)->see(seen(0, {in_pod(evicted), killed.subject()}));
  ASSERT_TRUE(server.is_asked(3)) << "it is tried again and again";
  EXPECT_TRUE(killed.becomes("?")) << "the other act does not wait for it";
  EXPECT_FALSE((*runner)->wait_for_orders(0)) << "the eviction is still out";
  server.allow();
  ASSERT_TRUE((*runner)->wait_for_orders(60));
  (*runner)->see(seen(1, {in_pod(evicted)}));
  const std::vector<std::string> events = events_of(folder.path());
  EXPECT_EQ(std::count(events.begin(), events.end(), "evict intent"), 1);
  EXPECT_EQ(std::count(events.begin(), events.end(), "evict done"), 1);
}

TEST(Runner, AForbiddenEvictionEndsWithItsEvidence) {
  const TempFolder folder;
  const Victim victim(false);
  OnePod server;
  RunnerOptions options = options_of(evicting(victim, "1h"), folder.path());
  options.tools = server.tools();
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  (*runner)->see(seen(0, {in_pod(victim)}));
  ASSERT_TRUE(server.is_asked(2));
  (*runner)->see(seen(1, {}));  // it no longer leaks
  ASSERT_TRUE((*runner)->wait_for_orders(60));
  server.allow();
  const int asked = server.asked();
  EXPECT_THAT(events_of(folder.path()), Contains("evict refused"));
  EXPECT_EQ(server.asked(), asked);
}

TEST(Runner, AForbiddenEvictionFailsAtItsTimeLimit) {
  const TempFolder folder;
  const Victim victim(false);
  OnePod server;
  RunnerOptions options = options_of(evicting(victim, "0.1s"), folder.path());
  options.tools = server.tools();
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  (*runner)->see(seen(0, {in_pod(victim)}));
  ASSERT_TRUE((*runner)->wait_for_orders(60));
  EXPECT_THAT((*runner)->state().acts.back().text,
              HasSubstr("PodDisruptionBudget forbids it, and still did after 0.1 s"));
}

TEST(Runner, APodIsNotEvictedUnlessItsKubeletRunsTheContainer) {
  const Victim victim(false);
  const TempFolder folder;
  OnePod server;
  server.allow();
  RunnerOptions options =
      options_of(fmt::format("[[policy]]\nname = \"evict\"\nwhen = {{ container = \"c-9\", user = \"{}\" }}\n"
                             "steps = [{{ do = \"evict\" }}]\n",
                             victim.subject().user),
                 folder.path());
  options.tools = server.tools();
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  // Its cgroup names a pod other than the one it runs in.
  Subject subject = in_pod(victim);
  subject.container = "c-9";
  (*runner)->see(seen(0, {subject}));
  ASSERT_TRUE((*runner)->wait_for_orders(60));
  EXPECT_EQ(server.asked(), 0);
  EXPECT_THAT((*runner)->state().acts.back().text, HasSubstr("the kubelet of node1 runs no container"));
}

TEST(Runner, WhatIsFrozenIsHeldUntilItIsThawed) {
  const TempFolder folder;
  const Victim victim(true);
  auto runner = Runner::open(options_of(policy_for(victim, R"({ do = "freeze" })"), folder.path()));
  ASSERT_TRUE(runner);
  const ProcessKey process = victim.subject().process;
  EXPECT_TRUE((*runner)->held().empty());
  climb(**runner, victim, 0, 2);
  EXPECT_THAT((*runner)->held(), ElementsAre(testing::Pair(testing::Pair(process.pid, process.start_ticks),
                                                           fmt::format("pid {} is frozen by policy a", process.pid))));
  ASSERT_TRUE((*runner)->switch_off(true, "by alice"));
  climb(**runner, victim, 2, 4);
  EXPECT_TRUE(victim.becomes("S"));
  EXPECT_TRUE((*runner)->held().empty());
}

/// The texts of the messages that `options` sends, in order.
std::shared_ptr<std::vector<std::string>> listen_to(RunnerOptions& options) {
  auto told = std::make_shared<std::vector<std::string>>();
  options.tools.notify = [told](const Note& note) { told->push_back(note.text); };
  return told;
}

TEST(Runner, EachActIsToldAndCountedWithoutAStepThatDoes) {
  const TempFolder folder;
  const Victim victim(true);
  RunnerOptions options = options_of(policy_for(victim, kRungs), folder.path());
  const auto told = listen_to(options);
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  climb(**runner, victim, 0, 6);
  victim.handles_term();
  climb(**runner, victim, 6, 15);
  EXPECT_TRUE(victim.becomes("?"));
  EXPECT_THAT(*told, ElementsAre(HasSubstr("POLICY a: checkpoint done: SIGUSR1 was sent; pid"),
                                 testing::AllOf(HasSubstr("POLICY a: freeze done: "),
                                                HasSubstr("it will not free its memory by itself; to undo it by hand: "
                                                          "kill -CONT " +
                                                          std::to_string(victim.pid()))),
                                 HasSubstr("POLICY a: terminate done: "), HasSubstr("POLICY a: freeze undone: SIGCONT"),
                                 HasSubstr("POLICY a: kill done: ")));
  const auto outcomes = (*runner)->outcomes();
  EXPECT_EQ(outcomes.at({"freeze", "done"}), 1U);
  EXPECT_EQ(outcomes.at({"freeze", "undone"}), 1U);
  EXPECT_FALSE(outcomes.contains({"freeze", "intent"}));
}

TEST(Runner, WhatCouldNotBeDoneIsToldAndCounted) {
  const TempFolder folder;
  const Victim victim(true);
  RunnerOptions options =
      options_of("[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"kill\" }]\n", folder.path());
  const auto told = listen_to(options);
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  Subject claimed = victim.subject();
  claimed.user = "alice";
  (*runner)->see(seen(0, {claimed}));
  ASSERT_TRUE((*runner)->wait_for_orders(60));
  EXPECT_THAT(*told, ElementsAre(HasSubstr("POLICY a: kill refused: the process belongs to ")));
  EXPECT_EQ((*runner)->outcomes().at({"kill", "refused"}), 1U);
}

TEST(Runner, ADryRunCountsAndTellsNobody) {
  const TempFolder folder;
  const Victim victim(true);
  RunnerOptions options = options_of(policy_for(victim, R"({ do = "freeze" })"), folder.path());
  options.config.dry_run = true;
  const auto told = listen_to(options);
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  climb(**runner, victim, 0, 2);
  EXPECT_TRUE(told->empty());
  EXPECT_EQ((*runner)->outcomes().at({"freeze", "would"}), 1U);
  (*runner)->release(1);
  EXPECT_THAT(events_of(folder.path()), ElementsAre("begin", "freeze would"));
}

TEST(Runner, TheEndThawsWhatIsFrozenAndTheNextRunFreezesItAgain) {
  const TempFolder folder;
  const Victim victim(true);
  const std::string policy = policy_for(victim, R"({ do = "freeze" }, { do = "kill", after = "1h" })");
  {
    RunnerOptions options = options_of(policy, folder.path());
    const auto told = listen_to(options);
    auto runner = Runner::open(std::move(options));
    ASSERT_TRUE(runner);
    climb(**runner, victim, 0, 3);
    EXPECT_TRUE(victim.becomes("T"));
    (*runner)->release(10);
    EXPECT_TRUE(victim.becomes("S"));
    EXPECT_THAT(told->back(), HasSubstr("freeze undone: SIGCONT was sent; vramtrack ends"));
    EXPECT_THAT(events_of(folder.path()), ElementsAre("begin", "freeze intent", "freeze done", "freeze released"));
  }
  auto runner = Runner::open(options_of(policy, folder.path()));
  ASSERT_TRUE(runner);
  climb(**runner, victim, 3, 6);
  EXPECT_TRUE(victim.becomes("T"));
  const auto events = events_of(folder.path());
  EXPECT_EQ(std::count(events.begin(), events.end(), "begin"), 1) << "it is the same ladder";
  EXPECT_EQ(events.back(), "freeze done");
}

TEST(Runner, WhatTheEndCannotUndoIsLeftAloud) {
  const TempFolder folder;
  const Victim victim(true);
  RunnerOptions options = options_of(policy_for(victim, R"({ do = "limit" })"), folder.path());
  const auto told = listen_to(options);
  bool answers = true;
  options.tools.ask_run = [&answers](std::uint32_t, const std::string&) -> Result<std::string> {
    if (answers) return "ok limit=7";
    return fail("the run does not answer");
  };
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  climb(**runner, victim, 0, 2);
  answers = false;
  static_cast<void>((*runner)->take_messages());
  (*runner)->release(10);
  const std::string by_hand = fmt::format("to undo it by hand: vramtrack control {} --limit 7", victim.pid());
  EXPECT_THAT(told->back(), testing::AllOf(HasSubstr("limit left as it is: vramtrack is ending"), HasSubstr(by_hand)));
  EXPECT_THAT((*runner)->take_messages(),
              Contains(testing::AllOf(HasSubstr("policy a: limit: left: "), HasSubstr(by_hand))));
  EXPECT_THAT(events_of(folder.path()),
              ElementsAre("begin", "limit intent", "limit done", "limit undo_failed", "limit left"));
}

TEST(Runner, WithoutARecordNothingIsDone) {
  const TempFolder folder;
  const Victim victim(true);
  RunnerOptions options = options_of(policy_for(victim, R"({ do = "kill" })"), folder.path());
  options.audit_path.clear();
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  climb(**runner, victim, 0, 3);
  EXPECT_TRUE(victim.becomes("S"));
}

TEST(Runner, OnlyOneProgramActs) {
  const TempFolder folder;
  const auto first = Runner::open(options_of("", folder.path()));
  ASSERT_TRUE(first);
  const auto second = Runner::open(options_of("", folder.path()));
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another vramtrack"));
}

TEST(Runner, AProgramIsRunWithoutAShell) {
  const TempFolder folder;
  const Victim victim(true);
  const std::string out = folder.path() + "/out";
  auto runner = Runner::open(options_of(
      policy_for(victim,
                 fmt::format("{{ do = \"run\", program = [\"sh\", \"-c\", \"printf '%s' \\\"$1\\\" > {}\", \"x\", "
                             "\"{{pid}} $(id); {{gpu}}\"] }}",
                             out)),
      folder.path()));
  ASSERT_TRUE(runner);
  climb(**runner, victim, 0, 2);
  std::ifstream file(out);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, fmt::format("{} $(id); ", victim.pid()));
}

/// The conditions of a user other than root: the permissions of files apply.
class WithoutOverride {
 public:
  WithoutOverride() {
    ::syscall(SYS_capget, &header_, was_);
    __user_cap_data_struct now[2] = {was_[0], was_[1]};
    now[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
    ::syscall(SYS_capset, &header_, now);
  }
  ~WithoutOverride() { ::syscall(SYS_capset, &header_, was_); }
  WithoutOverride(const WithoutOverride&) = delete;
  WithoutOverride& operator=(const WithoutOverride&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct was_[2] = {};
};

/// A reason for not carrying out a step: the change before its ladder begins, or after its intent has been recorded.
struct Refusal {
  const char* step;
  const char* why;
  std::function<void(const Site&, RunnerOptions&)> before;
  std::function<void(const Site&)> then;
};

const std::string kJob = "cgroup/batch/job";

const std::vector<Refusal>& refusals() {
  using std::filesystem::permissions;
  using std::filesystem::perms;
  const auto nothing = [](const Site&, RunnerOptions&) {};
  const auto goes = [](const Site& site) {
    ::kill(static_cast<pid_t>(site.victim.pid()), SIGKILL);
    EXPECT_TRUE(site.victim.becomes("Z?"));
    std::filesystem::remove_all(fmt::format("{}/proc/{}", site.folder, site.victim.pid()));
  };
  const auto is_gone = [goes](const Site& site, RunnerOptions&) { goes(site); };
  const auto does_not_answer = [](const Site&, RunnerOptions& options) {
    options.tools.ask_run = [](std::uint32_t, const std::string&) -> Result<std::string> {
      return fail("the run does not answer");
    };
  };
  static const char* const kThrottle = R"({ do = "throttle", cpu-percent = 25 })";
  static const char* const kLimit = R"({ do = "limit", size = "7 B" })";
  static const char* const kRestart = R"({ do = "restart", program = ["/bin/true", "restart"] })";
  static const std::vector<Refusal> all = {
      {kThrottle, "throttle refused: pid ", is_gone, {}},
      {kThrottle, "failed: pid ", nothing, goes},
      {kThrottle,
       "failed: it has no cgroup of its own",
       [](const Site& site, RunnerOptions&) { std::filesystem::remove_all(site.folder + '/' + kJob); },
       {}},
      {kThrottle, "failed: it has no cgroup of its own", nothing,
       [](const Site& site) { std::filesystem::remove_all(site.folder + '/' + kJob); }},
      {kThrottle,
       "failed: the cgroup /batch/job cannot be used: 1 other process is in it",
       [](const Site& site, RunnerOptions&) {
         site.put(kJob + "/cgroup.procs", fmt::format("{}\n{}\n", site.victim.pid(), site.victim.pid() + 1));
       },
       {}},
      {kThrottle,
       "ermission",
       [](const Site& site, RunnerOptions&) { permissions(site.folder + '/' + kJob + "/cpu.max", perms::owner_read); },
       {}},
      {kThrottle, "ermission", nothing,
       [](const Site& site) { permissions(site.folder + '/' + kJob + "/cpu.max", perms::owner_read); }},
      {kLimit, "limit refused: pid ", is_gone, {}},
      {kLimit, "failed: pid ", nothing, goes},
      {kLimit,
       "failed: this vramtrack cannot reach the runs",
       [](const Site&, RunnerOptions& options) { options.tools.ask_run = {}; },
       {}},
      {kLimit, "failed: the run does not answer", does_not_answer, {}},
      {kLimit,
       "failed: limits may not be changed",
       [](const Site&, RunnerOptions& options) {
         options.tools.ask_run = [](std::uint32_t, const std::string& line) -> Result<std::string> {
           if (line == "status") return "ok limit=0";
           return fail("limits may not be changed");
         };
       },
       {}},
      {kRestart, "restart refused: pid ", is_gone, {}},
      {kRestart, "failed: pid ", nothing, goes},
      {kRestart,
       "failed: '/bin/true restart' ended with exit status 1",
       [](const Site&, RunnerOptions& options) {
         options.tools.run = [](const auto&, double) -> Result<std::string> {
           return fail("'/bin/true restart' ended with exit status 1");
         };
       },
       {}},
      {R"({ do = "restart", unit = "train.service" })",
       "failed: the process is not running in the unit train.service",
       nothing,
       {}},
      {R"({ do = "restart", runtime = "docker" })",
       "failed: docker: permission denied",
       [](const Site&, RunnerOptions& options) {
         options.tools.run = [](const auto&, double) -> Result<std::string> {
           return fail("docker: permission denied");
         };
       },
       {}},
  };
  return all;
}

TEST(Runner, AnActThatIsRefusedIsToldOnceAndItsLadderGoesOn) {
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(fmt::format("{} {}", refusal.step, refusal.why));
    const TempFolder folder;
    const Victim victim(true);
    const Site site(victim, folder.path(), std::string(refusal.step) + R"(, { do = "kill", after = "1s" })");
    const WithoutOverride not_root;
    RunnerOptions options = site.options();
    const auto told = listen_to(options);
    options.at_point = [&refusal, &site](std::string_view point, const Order& order) {
      if (point == "intent" && order.step == 0 && refusal.then) refusal.then(site);
    };
    if (refusal.before) refusal.before(site, options);
    // The sampler has not noticed yet.
    const Observation leaking = seen(0, {site.subject()});
    auto runner = Runner::open(std::move(options));
    ASSERT_TRUE(runner);
    (*runner)->see(leaking);
    ASSERT_TRUE((*runner)->wait_for_orders(60));
    for (int t = 1; t < 12; ++t) {
      (*runner)->see(site.seen(t));
      ASSERT_TRUE((*runner)->wait_for_orders(60));
      if (t == 4) {
        EXPECT_TRUE(victim.becomes("Z?"));  // the seconds are not real ones
      }
    }
    // A failed act may have been done in part, so it is undone, too.
    const auto is_refusal = [](const std::string& text) {
      return text.find(" failed: ") != std::string::npos || text.find(" refused: ") != std::string::npos;
    };
    EXPECT_EQ(std::count_if(told->begin(), told->end(), is_refusal), 1) << fmt::format("{}", fmt::join(*told, "\n"));
    EXPECT_THAT(*told, Contains(HasSubstr(refusal.why)));
    EXPECT_TRUE((*runner)->held().empty());
    EXPECT_EQ(site.get("limit"), "0");
    if (std::filesystem::exists(site.folder + '/' + kJob)) {
      EXPECT_EQ(site.left(), "");
    }
    const auto events = events_of(folder.path());
    EXPECT_EQ(std::count(events.begin(), events.end(), "begin"), 1);
    EXPECT_EQ(std::count(events.begin(), events.end(), "end"), 1);
  }
}

TEST(Runner, AThrottledProcessWhoseQuotaCannotBeReadBackIsLeftAloud) {
  const TempFolder folder;
  const Victim victim(true);
  const Site site(victim, folder.path(), R"({ do = "throttle", cpu-percent = 25 })");
  RunnerOptions options = site.options();
  const auto told = listen_to(options);
  const WithoutOverride not_root;
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  (*runner)->see(site.seen(0));
  ASSERT_TRUE((*runner)->wait_for_orders(60));
  EXPECT_EQ(site.left(), "throttled ");
  const std::string quota = site.folder + '/' + kJob + "/cpu.max";
  std::filesystem::permissions(quota, std::filesystem::perms::none);
  (*runner)->release(10);
  EXPECT_THAT(events_of(folder.path()), Contains("throttle undo_failed"));
  EXPECT_THAT(told->back(), testing::AllOf(HasSubstr("throttle left as it is"), HasSubstr("to undo it by hand: echo")));
  std::filesystem::permissions(quota, std::filesystem::perms::owner_all);
}

/// An agent in a process of its own. It climbs from `from_s` to `to_s`, and exits with 0.
pid_t start_agent(const Site& site, const std::function<void(RunnerOptions&)>& prepare, int from_s, int to_s) {
  const pid_t agent = ::fork();
  if (agent != 0) return agent;
  RunnerOptions options = site.options();
  prepare(options);
  auto runner = Runner::open(std::move(options));
  if (!runner) ::_exit(1);
  int t = from_s;
  const auto tick = [&] {
    (*runner)->see(site.seen(t++));
    (*runner)->wait_for_orders(60);
  };
  while (t < to_s) tick();
  // The seconds are not real ones: the kernel may not have ended it yet.
  [[maybe_unused]] const bool is_over = site.victim.becomes("?");
  for (int i = 0; i < 3; ++i) tick();
  ::_exit(0);
}

/// How it ended: by itself, or by a power cut at the point that `prepare` sets.
int agent_with(const Site& site, const std::function<void(RunnerOptions&)>& prepare, int from_s, int to_s) {
  int status = 0;
  ::waitpid(start_agent(site, prepare, from_s, to_s), &status, 0);
  return status;
}

/// Its messages go into the file "told", one per line.
void tell_into_file(RunnerOptions& options, const std::string& folder) {
  options.tools.notify = [folder](const Note& note) {
    std::ofstream(folder + "/told", std::ios::app) << note.act_id << '\n';
  };
}

void expect_all_is_told(const std::string& folder) {
  std::ifstream file(folder + "/told");
  const std::set<std::string> told{std::istream_iterator<std::string>(file), {}};
  const auto entries = read_audit(folder + "/store.db.acts.jsonl");
  ASSERT_TRUE(entries);
  for (const AuditEntry& entry : *entries) {
    if (!needs_notification(entry)) continue;
    EXPECT_TRUE(entry.is_for_people);
    EXPECT_TRUE(told.contains(note_of(entry).act_id)) << entry.action << ' ' << entry.event;
  }
}

/// Runs an agent that ends at `point` of step `step`; -1: never.
void agent_until(const Site& site, std::string_view point, int step, int from_s, int to_s) {
  const auto prepare = [&](RunnerOptions& options) {
    tell_into_file(options, site.folder);
    options.at_point = [point, step, &site](std::string_view at, const Order& order) {
      site.before_kill(at, order);
      if (at == point && static_cast<int>(order.step) == step) ::raise(SIGKILL);
    };
  };
  const int status = agent_with(site, prepare, from_s, to_s);
  if (step >= 0)
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "the agent was not killed at " << point << ' ' << step;
  else
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Runner, APowerCutAtAnyMomentRepeatsNothingAndForgetsNothing) {
  for (const std::string_view point : {"intent", "performed", "done"})
    for (int step = 0; step < 4; ++step) {
      SCOPED_TRACE(fmt::format("killed at '{}' of step {}", point, step + 1));
      const TempFolder folder;
      const Victim victim(true);
      const Site site(victim, folder.path(), kRungs);
      agent_until(site, point, step, 0, 12);
      agent_until(site, "", -1, 12, 40);
      // An intent that never became an act is not repeated: it counts as done, and its deadline runs.
      const auto at_most_once = [&](int count, int of_step) {
        return point == "intent" && step == of_step ? count == 0 : count == 1;
      };
      EXPECT_TRUE(at_most_once(victim.usr1(), 0)) << victim.usr1();
      EXPECT_TRUE(at_most_once(victim.term(), 2)) << victim.term();
      EXPECT_TRUE(victim.becomes("?")) << victim.state();
      const auto events = events_of(folder.path());
      EXPECT_EQ(std::count(events.begin(), events.end(), "begin"), 1);
      EXPECT_EQ(std::count(events.begin(), events.end(), "end"), 1);
      EXPECT_EQ(std::count(events.begin(), events.end(), "checkpoint done"), 1);
      EXPECT_EQ(std::count(events.begin(), events.end(), "terminate done"), 1);
      EXPECT_GE(std::count(events.begin(), events.end(), "freeze undone"), 1);
    }
}

/// A step for each action that is not among kRungs, and how often it may run if the agent is killed once.
struct Rung {
  const char* step;
  const char* program;  ///< the program it runs; nullptr: none
  int most;
};
const Rung kOthers[] = {
    {R"({ do = "notify", after = "1s" })", nullptr, 0},
    {R"({ do = "throttle", cpu-percent = 25, after = "1s" })", nullptr, 0},
    {R"({ do = "limit", size = "7 B", after = "1s" })", nullptr, 0},
    {R"({ do = "signal-job", after = "1s" })", "scancel", 1},
    {R"({ do = "run", program = ["/bin/true", "saved"], after = "1s" })", "/bin/true saved", 1},
    {R"({ do = "drain", after = "1s" })", "scontrol update NodeName=node1 State=DRAIN", 2},
    {R"({ do = "cordon", after = "1s" })", "PATCH /api/v1/nodes/node1", 9},
    {R"({ do = "evacuate", partitions = ["gpu"], after = "1s" })", "scontrol requeue 77", 2},
    {R"({ do = "restart", program = ["/bin/true", "restart"], after = "1s" })", "/bin/true restart", 1},
    {R"({ do = "requeue", after = "1s" })", "scontrol requeue 1234", 2},
    {R"({ do = "evict", after = "1s" })", "POST", 2},
};

std::string name_of_action(std::string_view step) {
  const std::size_t from = step.find("do = \"") + 6;
  return std::string(step.substr(from, step.find('"', from) - from));
}

/// Checks a ladder that has ended, whenever and however often its agent was killed.
void expect_nothing_is_forgotten(const Site& site) {
  EXPECT_TRUE(site.victim.becomes("?")) << site.victim.state();
  const auto events = events_of(site.folder);
  EXPECT_EQ(std::count(events.begin(), events.end(), "begin"), 1);
  EXPECT_EQ(std::count(events.begin(), events.end(), "end"), 1);
  EXPECT_EQ(site.left(), "");
  expect_all_is_told(site.folder);
}

TEST(Runner, APowerCutAtAnyMomentOfAnyActionForgetsNothing) {
  std::set<std::string> actions_tried = {"checkpoint", "freeze", "terminate", "kill"};
  for (const Rung& rung : kOthers) {
    const std::string name = name_of_action(rung.step);
    actions_tried.insert(name);
    for (const std::string_view point : {"intent", "performed", "done"}) {
      SCOPED_TRACE(fmt::format("{} killed at '{}'", name, point));
      const TempFolder folder;
      const Victim victim(true);
      const Site site(victim, folder.path(), std::string(rung.step) + R"(, { do = "kill", after = "1s" })");
      agent_until(site, point, 0, 0, 12);
      agent_until(site, "", -1, 12, 40);
      expect_nothing_is_forgotten(site);
      const auto events = events_of(folder.path());
      EXPECT_EQ(std::count(events.begin(), events.end(), name + " done"), 1);
      if (rung.program != nullptr) {
        EXPECT_LE(site.ran(rung.program), rung.most);
      }
      // For an act that cannot be repeated, an intent counts as done.
      if (rung.program != nullptr && rung.most == 1) {
        EXPECT_EQ(site.ran(rung.program), point == "intent" ? 0 : 1);
      }
    }
  }
  for (const ActionInfo* action : actions()) EXPECT_TRUE(actions_tried.contains(std::string(action->name)));
}

/// A ladder of all actions, which takes less than kLadder_s.
constexpr int kLadder_s = 100;
std::string all_rungs() {
  std::string out = R"({ do = "checkpoint", signal = "USR1" }, { do = "freeze", after = "1s" })";
  for (const Rung& rung : kOthers) out += std::string(", ") + rung.step;
  return out + R"(, { do = "terminate", after = "1s" }, { do = "kill", after = "2s" })";
}

TEST(Runner, APowerCutBetweenTheRecordAndItsMessageLosesNoMessage) {
  bool was_killed = true;
  for (int line = 0; was_killed; ++line) {
    SCOPED_TRACE(fmt::format("killed after line {} of the record", line));
    const TempFolder folder;
    const Victim victim(true);
    const Site site(victim, folder.path(), kRungs);
    const auto until = [&](int last_line) {
      return [&site, last_line](RunnerOptions& options) {
        tell_into_file(options, site.folder);
        options.at_point = [&site, last_line, lines = 0](std::string_view at, const Order& order) mutable {
          site.before_kill(at, order);
          if (at == "written" && lines++ == last_line) ::raise(SIGKILL);
        };
      };
    };
    was_killed = WIFSIGNALED(agent_with(site, until(line), 0, 12));
    agent_with(site, until(-1), 12, 40);
    expect_nothing_is_forgotten(site);
  }
}

/// At any time, not only between two steps: VRAMTRACK_KILLS times (`make check-kills`: 200).
TEST(Runner, KilledAtAnyTimeItForgetsNothing) {
  using Clock = std::chrono::steady_clock;
  const char* const wish = std::getenv("VRAMTRACK_KILLS");
  const int kills = wish != nullptr ? std::atoi(wish) : 6;
  std::mt19937 random(1);
  std::int64_t whole_us = 0;
  int killed = 0, at_once = 0, rounds = 0;
  std::map<std::string, int> last;  // how often each action was the last in the record
  for (; killed < kills; ++rounds) {
    SCOPED_TRACE(fmt::format("round {}", rounds + 1));
    const TempFolder folder;
    const Victim victim(true);
    const Site site(victim, folder.path(), all_rungs());
    const auto prepare = [&](RunnerOptions& options) {
      tell_into_file(options, folder.path());
      options.at_point = [&site](std::string_view at, const Order& order) { site.before_kill(at, order); };
    };
    int from_s = 0;
    // The first round shows how long an agent takes if it is not killed.
    for (int cut = rounds == 0 ? 0 : 1 + static_cast<int>(random() % 3); cut > 0; --cut, from_s += kLadder_s) {
      const pid_t agent = start_agent(site, prepare, from_s, from_s + kLadder_s);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<std::uint64_t>(whole_us)));
      ::kill(agent, SIGKILL);
      int status = 0;
      ::waitpid(agent, &status, 0);
      if (!WIFSIGNALED(status)) continue;
      ++killed;
      const auto entries = read_audit(folder.path() + "/store.db.acts.jsonl");
      ++last[entries && !entries->empty() ? entries->back().action : std::string()];
    }
    const auto begun = Clock::now();
    EXPECT_EQ(agent_with(site, prepare, from_s, from_s + 2 * kLadder_s), 0);
    if (rounds == 0) whole_us = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun).count();
    expect_nothing_is_forgotten(site);
    EXPECT_LE(victim.usr1(), 1);
    EXPECT_LE(victim.term(), 1);
    for (const Rung& rung : kOthers)
      if (rung.most == 1) {
        EXPECT_LE(site.ran(rung.program), 1) << rung.program;
      }
    const auto events = events_of(folder.path());
    if (std::count(events.begin(), events.end(), "kill done") == 0) ++at_once;
  }
  if (wish == nullptr) return;
  std::cout << fmt::format("{} kills in {} rounds; in {} the process ended without the last step\n", killed, rounds,
                           at_once);
  for (const auto& [action, times] : last) std::cout << fmt::format("{} {}\n", times, action.empty() ? "-" : action);
}

TEST(Runner, AFrozenProcessIsThawedByTheNextRunWhenThePolicyIsGone) {
  const TempFolder folder;
  const Victim victim(true);
  agent_until(Site(victim, folder.path(), kRungs), "done", 1, 0, 12);
  EXPECT_TRUE(victim.becomes("T"));
  auto runner = Runner::open(options_of("", folder.path()));
  ASSERT_TRUE(runner);
  climb(**runner, victim, 12, 15);
  EXPECT_TRUE(victim.becomes("S"));
}

TEST(Runner, ATornLineOfThePowerCutIsLeftOut) {
  const TempFolder folder;
  const Victim victim(true);
  const Site site(victim, folder.path(), kRungs);
  agent_until(site, "done", 0, 0, 12);
  std::ofstream(folder.path() + "/store.db.acts.jsonl", std::ios::app)
      << R"({"schema":"vramtrack.act.v1","event":"int)";
  agent_until(site, "", -1, 12, 40);
  EXPECT_EQ(victim.usr1(), 1);
  EXPECT_TRUE(victim.becomes("?"));
}

TEST(Runner, AnotherBootHasNoneOfTheseProcesses) {
  const TempFolder folder;
  const Victim victim(true);
  agent_until(Site(victim, folder.path(), kRungs), "done", 0, 0, 12);
  RunnerOptions options = options_of(policy_for(victim, kRungs), folder.path());
  options.boot_id = "another";
  auto runner = Runner::open(std::move(options));
  ASSERT_TRUE(runner);
  EXPECT_TRUE((*runner)->state().climbs.empty());
  EXPECT_THAT(events_of(folder.path()), Contains("end"));
}

TEST(Audit, AnEntryComesBackAsItWas) {
  AuditEntry e;
  e.event = "intent";
  e.time = at(1);
  e.written = at(2);
  e.boot = "b";
  e.climb = "c";
  e.policy = "p";
  e.step = 3;
  e.action = "freeze";
  e.text = "freeze it";
  e.undo = "v1\n/sys/fs/cgroup/freezer/x";
  e.subject = leaking();
  e.subject.growth_bytes_per_s = {2e6, 2e6, 2e6};
  const auto back = parse_audit(audit_json(e));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->subject, e.subject);
  EXPECT_EQ(back->undo, e.undo);
  EXPECT_EQ(back->step, e.step);
  EXPECT_EQ(back->time, e.time);
  EXPECT_FALSE(parse_audit("{}"));
  EXPECT_FALSE(parse_audit("not json"));
}

}  // namespace
}  // namespace vramtrack::act

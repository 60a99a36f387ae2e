#include "act/ladder.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "subjects.hpp"

namespace vramtrack::act {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kLadder = R"([[policy]]
name = "a"
when = { user = "alice" }
steps = [
  { do = "notify" },
  { do = "freeze", after = "10s" },
  { do = "terminate", after = "60s" },
  { do = "kill", after = "30s" },
]
)";

/// Carries orders out at once, and remembers them as "act terminate", "undo freeze", "end: why".
class Climbing {
 public:
  explicit Climbing(const std::string& toml, ActConfig config = acting(), std::string own_user = "root")
      : ladder(policies_of(toml), std::move(config), std::move(own_user)) {}

  std::vector<std::string> see(const Observation& seen) {
    std::vector<std::string> done;
    for (const Order& order : ladder.advance(seen)) {
      const std::string name = order.action.empty() ? order.text : order.action;
      switch (order.kind) {
        case Order::Kind::begin:
          done.push_back("begin " + order.policy);
          break;
        case Order::Kind::not_done:
          done.push_back(fmt::format("{} {}: {}", name, order.event, order.text));
          break;
        case Order::Kind::report:
          done.push_back("say: " + name);
          break;
        case Order::Kind::end:
          done.push_back("end: " + name);
          break;
        case Order::Kind::undo:
          done.push_back("undo " + name);
          ladder.take_undo_result(order, undo_failure);
          break;
        case Order::Kind::act:
          done.push_back("act " + name);
          ladder.take_result(order, {outcome, {}, find_action(name)->undo != nullptr ? "state" : "", seen.time});
          break;
      }
    }
    return done;
  }

  Ladder ladder;
  ActResult::Kind outcome = ActResult::Kind::done;
  std::string undo_failure;
};

TEST(Ladder, TakesEachStepWhenItsDeadlineIsReached) {
  Climbing c(kLadder);
  EXPECT_THAT(c.see(seen(0, {leaking()})), ElementsAre("begin a", "act notify"));
  EXPECT_THAT(c.see(seen(9, {leaking()})), IsEmpty());
  EXPECT_THAT(c.see(seen(10, {leaking()})), ElementsAre("act freeze"));
  EXPECT_THAT(c.see(seen(69, {leaking()})), IsEmpty());
  EXPECT_THAT(c.see(seen(70, {leaking()})), ElementsAre("act terminate"));
  // A frozen process handles the signal once it runs again.
  EXPECT_THAT(c.see(seen(71, {leaking()})), ElementsAre("undo freeze"));
  EXPECT_THAT(c.see(seen(100, {leaking()})), ElementsAre("act kill"));
  EXPECT_THAT(c.see(seen(130, {leaking()})), IsEmpty());
  EXPECT_THAT(c.see(seen(161, {leaking()})), ElementsAre(HasSubstr("is still running after the last step")));
  EXPECT_THAT(c.see(seen(500, {leaking()})), IsEmpty());
}

TEST(Ladder, EndsWhenTheEvidenceIsGoneAndUndoesWhatIsHeld) {
  Climbing c(kLadder);
  c.see(seen(0, {leaking()}));
  c.see(seen(10, {leaking()}));
  // The frozen process still holds its memory: the lack of growth is not evidence against the leak.
  Observation quiet = seen(20, {leaking()});
  quiet.subjects.clear();
  EXPECT_THAT(c.see(quiet), IsEmpty());
  quiet.time = at(25);
  quiet.processes.front().used_bytes /= 2;
  EXPECT_THAT(c.see(quiet), ElementsAre("undo freeze"));
  quiet.time = at(26);
  EXPECT_THAT(c.see(quiet), ElementsAre("end: the evidence no longer holds: the memory was released"));
  quiet.time = at(27);
  EXPECT_THAT(c.see(quiet), IsEmpty());
}

TEST(Ladder, AnAlertThatEndsEndsTheClimbAtOnce) {
  Climbing c(kLadder);
  c.see(seen(0, {leaking()}));
  Observation over = seen(5, {leaking()});
  over.subjects.clear();
  EXPECT_THAT(c.see(over), ElementsAre("end: the evidence no longer holds: the alert has ended"));
}

TEST(Ladder, AConditionThatFailsForAMomentKeepsTheStepWaiting) {
  Climbing c(R"([[policy]]
name = "a"
when = { severity = "warning" }
steps = [{ do = "notify" }, { do = "notify", after = "10s" }]
)");
  c.see(seen(0, {leaking()}));
  Subject milder = leaking();
  milder.severity = Severity::watch;
  EXPECT_THAT(c.see(seen(10, {milder})), IsEmpty());
  EXPECT_THAT(c.see(seen(30, {leaking()})), ElementsAre("act notify"));
  EXPECT_THAT(c.see(seen(40, {milder})), IsEmpty());
  EXPECT_THAT(c.see(seen(100, {milder})), ElementsAre(HasSubstr("its severity is watch, below warning")));
}

TEST(Ladder, ACheckpointIsTimedByTheLowEstimateOfTheEnd) {
  Climbing c(R"([[policy]]
name = "a"
when = { user = "alice" }
steps = [{ do = "checkpoint", signal = "USR1", usually-takes = "120s" }, { do = "terminate" }]
)");
  const auto ending_in = [](double low_s) {
    Subject s = leaking();
    s.ends_in_s = Interval{low_s, low_s * 2, low_s * 3};
    return s;
  };
  EXPECT_THAT(c.see(seen(0, {ending_in(1000)})), ElementsAre("begin a"));
  EXPECT_THAT(c.see(seen(840, {ending_in(161)})), IsEmpty());
  EXPECT_THAT(c.see(seen(841, {ending_in(160)})), ElementsAre("act checkpoint"));
  // It gets its usual time before the next step.
  EXPECT_THAT(c.see(seen(960, {ending_in(41)})), IsEmpty());
  EXPECT_THAT(c.see(seen(961, {ending_in(40)})), ElementsAre("act terminate"));
}

TEST(Ladder, ACheckpointLeavesTimeForTheStepsAfterIt) {
  Climbing c(R"([[policy]]
name = "a"
when = { user = "alice" }
steps = [{ do = "checkpoint", signal = "USR1", usually-takes = "120s" }, { do = "terminate" }, { do = "kill", after = "180s" }]
)");
  Subject s = leaking();
  s.ends_in_s = Interval{301, 600, 900};
  EXPECT_THAT(c.see(seen(0, {s})), ElementsAre("begin a"));
  s.ends_in_s->low = 300;
  EXPECT_THAT(c.see(seen(1, {s})), ElementsAre("act checkpoint"));
}

TEST(Ladder, WithoutAnEndTheCheckpointIsAskedForAtOnce) {
  Climbing c(
      "[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"checkpoint\", signal = \"USR1\", "
      "usually-takes = \"2min\" }]\n");
  Subject s = leaking();
  s.ends_in_s.reset();
  EXPECT_THAT(c.see(seen(0, {s})), ElementsAre("begin a", "act checkpoint"));
}

TEST(Ladder, TheMemoryOfAnEndedProcessIsWatchedUntilItIsBack) {
  for (const bool comes_back : {true, false}) {
    Climbing c("[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"terminate\" }]\n");
    EXPECT_THAT(c.see(seen(0, {leaking()})), ElementsAre("begin a", "act terminate"));
    Observation gone = seen(5, {});
    gone.processes.push_back({leaking().process, true, 0});
    gone.devices.front().used_bytes = 9e9;
    EXPECT_THAT(c.see(gone), IsEmpty());
    gone.time = at(10);
    if (comes_back) {
      gone.devices.front().used_bytes = 1.2e9;
      EXPECT_THAT(c.see(gone), ElementsAre(HasSubstr("its 7.5 GiB were freed")));
      continue;
    }
    gone.time = at(65);
    EXPECT_THAT(c.see(gone), ElementsAre(HasSubstr("were not freed within 60 s"),
                                         "end: the process has ended, but its memory was not freed"));
  }
}

TEST(Ladder, ANeighbourThatGrowsDoesNotHideThatMemoryIsBack) {
  Climbing c("[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"terminate\" }]\n");
  c.see(seen(0, {leaking()}));
  Observation gone = seen(5, {});
  gone.processes = {{leaking().process, true, 0}, {leaking(7).process, false, 8'000'000'000}};
  gone.devices.front().used_bytes = 9e9;
  gone.devices.front().by_processes_bytes = 8e9;
  EXPECT_THAT(c.see(gone), ElementsAre(HasSubstr("were freed")));
}

TEST(Ladder, AFailedCheckpointEndsTheLadderUnlessTheStepSaysOtherwise) {
  for (const bool continues : {false, true}) {
    Climbing c(std::string("[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"checkpoint\", "
                           "signal = \"USR1\"") +
               (continues ? ", on-failure = \"continue\"" : "") + " }, { do = \"terminate\" }]\n");
    c.outcome = ActResult::Kind::failed;
    EXPECT_THAT(c.see(seen(0, {leaking()})), ElementsAre("begin a", "act checkpoint"));
    c.outcome = ActResult::Kind::done;
    const auto next = c.see(seen(1, {leaking()}));
    if (continues)
      EXPECT_THAT(next, ElementsAre("act terminate"));
    else
      EXPECT_THAT(next, IsEmpty());
  }
}

TEST(Ladder, ActsOfAnHourAreBoundedAndAMessageSaysSoOnce) {
  ActConfig config = acting();
  config.max_acts_per_hour = 2;
  Climbing c("[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"terminate\" }]\n", config);
  EXPECT_THAT(c.see(seen(0, {leaking(1), leaking(2), leaking(3)})),
              ElementsAre("begin a", "act terminate", "begin a", "act terminate", "begin a",
                          HasSubstr("terminate waits: 2 actions")));
  EXPECT_THAT(c.see(seen(3599, {leaking(1), leaking(2), leaking(3)})),
              ::testing::Not(::testing::Contains("act terminate")));
  EXPECT_THAT(c.see(seen(3600, {leaking(1), leaking(2), leaking(3)})), ::testing::Contains("act terminate"));
}

TEST(Ladder, AJobIsNotRestartedForEver) {
  ActConfig config = acting();
  config.max_retries = 2;
  Climbing c(
      "[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"restart\", unit = \"x.service\" }]\n",
      config);
  EXPECT_THAT(c.see(seen(0, {leaking(1)})), ElementsAre("begin a", "act restart"));
  EXPECT_THAT(c.see(seen(100, {leaking(2)})), ::testing::Contains("act restart"));
  EXPECT_THAT(c.see(seen(200, {leaking(3)})),
              ::testing::Contains(HasSubstr("restart refused: giving up: unit x.service was started again 2 times")));
  EXPECT_THAT(c.see(seen(300, {leaking(3)})), IsEmpty());
  // A day later it is permitted.
  EXPECT_THAT(c.see(seen(86600, {leaking(4)})), ::testing::Contains("act restart"));
}

TEST(Ladder, RefusesProcessesOfUsersWhomNobodyNamed) {
  Climbing c("[[policy]]\nname = \"a\"\nsteps = [{ do = \"notify\" }, { do = \"kill\" }]\n");
  EXPECT_THAT(c.see(seen(0, {leaking()})), ElementsAre("begin a", "act notify"));
  EXPECT_THAT(c.see(seen(1, {leaking()})), ElementsAre(HasSubstr("kill refused: the process belongs to alice")));
  EXPECT_THAT(c.see(seen(2, {leaking()})), IsEmpty());
}

TEST(Ladder, WithoutAProcessOnlyStepsThatNeedNoneAreTaken) {
  Climbing c("[[policy]]\nname = \"a\"\nsteps = [{ do = \"terminate\" }, { do = \"notify\" }]\n");
  Subject device = leaking();
  device.process = {};
  EXPECT_THAT(c.see(seen(0, {device})),
              ElementsAre("begin a", "terminate skipped: no visible process explains the growth"));
  EXPECT_THAT(c.see(seen(1, {device})), ElementsAre("act notify"));
}

TEST(Ladder, ADrainedNodeStaysSoWhenTheNextStepNeedsTheProcessToRun) {
  Climbing c(R"([[policy]]
name = "a"
when = { user = "alice" }
steps = [
  { do = "drain" },
  { do = "freeze", after = "10s" },
  { do = "requeue", after = "10s" },
]
)");
  EXPECT_THAT(c.see(seen(0, {leaking()})), ElementsAre("begin a", "act drain"));
  EXPECT_THAT(c.see(seen(10, {leaking()})), ElementsAre("act freeze"));
  EXPECT_THAT(c.see(seen(20, {leaking()})), ElementsAre("act requeue"));
  EXPECT_THAT(c.see(seen(21, {leaking()})), ElementsAre("undo freeze"));
  EXPECT_THAT(c.see(seen(22, {leaking()})), IsEmpty());
  c.ladder.switch_off(true, "the file");
  EXPECT_THAT(c.see(seen(23, {leaking()})), ::testing::Contains("undo drain"));
}

TEST(Ladder, ADrainedNodeStaysSoWhenTheMemoryDoesNotComeBack) {
  const std::string toml =
      "[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"drain\" }, { do = \"kill\" }]\n";
  for (const bool returns : {true, false}) {
    Climbing c(toml);
    c.see(seen(0, {leaking()}));
    EXPECT_THAT(c.see(seen(1, {leaking()})), ElementsAre("act kill"));
    Observation gone = seen(2, {});
    gone.processes.push_back({leaking().process, true, 0});
    gone.devices.front().used_bytes = returns ? 1e9 : 6e9;
    if (returns) {
      EXPECT_THAT(c.see(gone), ElementsAre("undo drain"));
    } else {
      EXPECT_THAT(c.see(gone), IsEmpty());
      gone.time = at(70);
      EXPECT_THAT(c.see(gone), ElementsAre(HasSubstr("were not freed within 68 s"), HasSubstr("memory was not freed")));
      EXPECT_TRUE(c.ladder.climbs().empty());
    }
  }
}

TEST(Ladder, AStepWaitsForTheLimitsOfAFleetAndAsksAgain) {
  Climbing c(
      "[[policy]]\nname = \"a\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"notify\" }, { do = \"kill\" }]\n");
  c.ladder.limit_by({{Limit::Of::nodes, Limit::Then::open_breaker, 0, 60, "actuate.breaker-nodes"}});
  EXPECT_THAT(c.see(seen(0, {leaking()})), ElementsAre("begin a", "act notify"));
  EXPECT_THAT(c.see(seen(1, {leaking()})), ElementsAre(HasSubstr("say: "), HasSubstr("kill waits: the circuit breaker "
                                                                                     "opens")));
  EXPECT_THAT(c.see(seen(2, {leaking()})), IsEmpty());
  c.ladder.limit_by({});
  EXPECT_THAT(c.see(seen(3, {leaking()})), IsEmpty()) << "a person must close it";
  c.ladder.close_breaker();
  EXPECT_THAT(c.see(seen(4, {leaking()})), ElementsAre("act kill"));
}

TEST(Ladder, AClaimBeginsOneLadderOnceItIsConfirmed) {
  Climbing c(kLadder);
  Claim claim{"ab", at(0), {{"alertname", "Leak"}}, at(0), at(0)};
  c.ladder.take(claim);
  EXPECT_THAT(c.see(seen(0, {})), IsEmpty());
  Observation nothing = seen(1, {});
  nothing.unproven = {{claim.id(), "no_agent", "gn1: the connection failed"}};
  EXPECT_THAT(c.see(nothing), ElementsAre(HasSubstr("refused (no_agent): alert Leak of")));
  EXPECT_THAT(c.see(nothing), IsEmpty()) << "once";
  Subject subject = leaking();
  subject.claim = claim.id();
  EXPECT_THAT(c.see(seen(2, {subject})), ElementsAre("begin a", "act notify"));
  EXPECT_EQ(c.ladder.climbs().size(), 1U);
  EXPECT_EQ(c.ladder.climbs().front().id, claim.id());
  EXPECT_THAT(c.see(seen(3, {})), ElementsAre(HasSubstr("end: ")));
  ASSERT_EQ(c.ladder.climbs().size(), 1U) << "it is remembered";
  EXPECT_EQ(c.ladder.climbs().front().phase, Climb::Phase::over);
  c.ladder.take(claim);
  EXPECT_THAT(c.see(seen(4, {subject})), IsEmpty());
  subject.claim = "another";
  EXPECT_THAT(c.see(seen(5, {subject})), IsEmpty()) << "nobody claimed it";
}

TEST(Ladder, ClaimsThatAreOverMakeRoomBeforeThoseThatWait) {
  Ladder ladder(policies_of(kLadder), acting(), "root");
  const auto climb = [](std::size_t i) {
    Climb one;
    one.claim = Claim{"ab", at(static_cast<double>(i)), {}, at(0), at(static_cast<double>(i))};
    one.id = one.claim->id();
    one.phase = i % 2 == 1 ? Climb::Phase::over : Climb::Phase::claimed;
    return one;
  };
  for (std::size_t i = 0; i < Ladder::kMostClaims; ++i) ladder.restore(climb(i));
  for (std::size_t i = 0; i < 2; ++i) ladder.take(*climb(10000 + i).claim);
  EXPECT_EQ(ladder.climbs().size(), Ladder::kMostClaims);
  const auto is_known = [&](std::size_t i) {
    return std::any_of(ladder.climbs().begin(), ladder.climbs().end(),
                       [id = climb(i).id](const Climb& one) { return one.id == id; });
  };
  EXPECT_TRUE(is_known(0)) << "waiting, though the oldest";
  EXPECT_FALSE(is_known(1));
  EXPECT_FALSE(is_known(3));
}

TEST(Ladder, OnAMachineOfWhichNothingIsKnownNothingIsDoneOrUndone) {
  Climbing c(kLadder);
  Subject remote = leaking();
  remote.process.host = "gn1";
  c.see(seen(0, {remote}));
  EXPECT_THAT(c.see(seen(10, {remote})), ElementsAre("act freeze"));
  Observation silent;
  silent.silent_hosts = {"gn1"};
  for (const double t : {70.0, 5000.0}) {
    silent.time = at(t);
    EXPECT_THAT(c.see(silent), IsEmpty());
  }
  EXPECT_THAT(c.see(seen(5001, {remote})), ElementsAre("act terminate"));
}

TEST(Ladder, OffUndoesWhatIsHeldAndDoesNothingMore) {
  Climbing c(kLadder);
  c.see(seen(0, {leaking()}));
  c.see(seen(10, {leaking()}));
  c.ladder.switch_off(true, "switched off by SIGUSR2");
  EXPECT_THAT(c.see(seen(11, {leaking()})), ElementsAre("undo freeze"));
  EXPECT_THAT(c.see(seen(12, {leaking()})), ElementsAre("end: switched off by SIGUSR2"));
  EXPECT_THAT(c.see(seen(13, {leaking()})), IsEmpty());
  c.ladder.switch_off(false);
  EXPECT_THAT(c.see(seen(14, {leaking()})), ElementsAre("begin a", "act notify"));
}

TEST(Ladder, AChangedPolicyBeginsAnew) {
  Climbing c(kLadder);
  c.see(seen(0, {leaking()}));
  c.see(seen(10, {leaking()}));
  c.ladder.use(policies_of("[[policy]]\nname = \"a\"\nsteps = [{ do = \"notify\" }]\n"), acting());
  EXPECT_THAT(c.see(seen(11, {leaking()})), ElementsAre("undo freeze"));
  EXPECT_THAT(c.see(seen(12, {leaking()})), ElementsAre("end: the policy was changed", "begin a", "act notify"));
}

TEST(Ladder, AnUndoThatFailsIsTriedThreeTimes) {
  Climbing c(kLadder);
  c.see(seen(0, {leaking()}));
  c.see(seen(10, {leaking()}));
  c.undo_failure = "no right";
  c.ladder.switch_off(true, "off");
  for (int i = 0; i < 3; ++i) EXPECT_THAT(c.see(seen(11 + i, {leaking()})), ElementsAre("undo freeze"));
  EXPECT_THAT(c.see(seen(14, {leaking()})), ElementsAre("end: off"));
}

TEST(Ladder, NothingIsDoneUnlessItIsEnabled) {
  Climbing c(kLadder, ActConfig{});
  EXPECT_THAT(c.see(seen(0, {leaking()})), IsEmpty());
}

TEST(Ladder, AnEarlierRunsClimbWaitsForItsEvidence) {
  for (const bool comes : {true, false}) {
    Climbing c(kLadder);
    Climb climb;
    climb.id = "c1";
    climb.policy = "a";
    climb.rule = c.ladder.rule("a", text_hash(c.ladder.policies().rules.front().text));
    climb.subject = leaking();
    climb.step = 2;
    climb.began = climb.step_since = at(0);
    ASSERT_NE(climb.rule, nullptr);
    c.ladder.restore(climb);
    EXPECT_THAT(c.see(seen(30, {})), IsEmpty());
    if (comes) {
      EXPECT_THAT(c.see(seen(70, {leaking()})), ElementsAre("act terminate"));
      continue;
    }
    EXPECT_THAT(c.see(seen(929, {})), IsEmpty());
    EXPECT_THAT(c.see(seen(930, {})), ElementsAre("end: the evidence no longer holds: the alert has ended"));
  }
}

// ---- properties: whatever is observed and whatever the results of the acts ----

struct Told {
  Order order;
  Timestamp time;
};

RC_GTEST_PROP(LadderProperty, HoldsItsPromisesWhateverHappens, ()) {
  const auto limit = *rc::gen::inRange(1, 6);
  ActConfig config = acting();
  config.max_acts_per_hour = limit;
  const std::string toml = std::string(kLadder) +
                           "[[policy]]\nname = \"b\"\nwhen = { user = [\"alice\", \"bob\"] }\n"
                           "steps = [{ do = \"throttle\", cpu-percent = 5 }, { do = \"kill\", after = \"20s\" }]\n";
  Ladder ladder(policies_of(toml), config, "root");
  std::map<std::string, std::size_t> last_step;            // by climb
  std::map<std::string, Timestamp> last_time;              // by climb
  std::map<std::string, std::multiset<std::size_t>> held;  // by climb
  std::map<std::string, std::string> climbing;             // by subject: its climb
  std::vector<Timestamp> acts;
  std::vector<Order> out;
  double now_s = 0;
  const int ticks = *rc::gen::inRange(1, 60);
  for (int tick = 0; tick < ticks; ++tick) {
    now_s += *rc::gen::inRange(1, 400) / 4.0;
    std::vector<Subject> subjects;
    std::vector<Observation::Process> ended;
    for (const std::uint32_t pid : {1U, 2U, 3U}) {
      const int fate = *rc::gen::inRange(0, 10);
      Subject s = leaking(pid);
      if (pid == 2) s.user = "bob";
      if (fate < 7) subjects.push_back(s);
      if (fate == 9) ended.push_back({s.process, true, 0});
    }
    Observation o = seen(now_s, subjects);
    o.processes.insert(o.processes.end(), ended.begin(), ended.end());
    if (*rc::gen::inRange(0, 20) == 0) ladder.switch_off(!ladder.is_off(), "off");
    const bool off = ladder.is_off();
    for (Order& order : ladder.advance(o)) {
      const std::string key = subject_key(order.subject);
      if (order.kind == Order::Kind::begin) {
        RC_ASSERT(!off);
        RC_ASSERT(climbing.count(key) == 0);                                     // one climb per process
        RC_ASSERT(order.policy == (order.subject.user == "alice" ? "a" : "b"));  // the first policy that matches
        climbing[key] = order.climb;
      } else if (order.kind == Order::Kind::end) {
        RC_ASSERT(climbing[key] == order.climb);
        RC_ASSERT(held[order.climb].empty());  // nothing stays frozen or throttled
        climbing.erase(key);
      } else if (order.kind == Order::Kind::act) {
        RC_ASSERT(!off);
        const auto* rule = order.policy == "a" ? &ladder.policies().rules[0] : &ladder.policies().rules[1];
        const Step& step = rule->steps[order.step];
        // Each step once, in order, and not before its time.
        if (last_step.count(order.climb) != 0) {
          RC_ASSERT(order.step > last_step[order.climb]);
          RC_ASSERT(seconds_between(last_time[order.climb], order.time) >= step.after_s);
        } else {
          RC_ASSERT(order.step == 0U);
        }
        // The evidence must hold: it is present now, or the growth was stopped.
        const bool present =
            std::any_of(subjects.begin(), subjects.end(), [&](const Subject& s) { return subject_key(s) == key; });
        RC_ASSERT(present || !held[order.climb].empty());
        if (!step.action->traits.is_free) acts.push_back(order.time);
        const auto within =
            std::count_if(acts.begin(), acts.end(), [&](Timestamp t) { return seconds_between(t, order.time) < 3600; });
        RC_ASSERT(within <= limit);
        for (const Order& other : out) RC_ASSERT(other.climb != order.climb);
        out.push_back(std::move(order));
      } else if (order.kind == Order::Kind::undo) {
        RC_ASSERT(held[order.climb].count(order.step) == 1U);
        for (const Order& other : out) RC_ASSERT(other.climb != order.climb);
        out.push_back(std::move(order));
      }
    }
    // Some orders finish at once, some later.
    std::vector<Order> later;
    for (Order& order : out) {
      if (*rc::gen::inRange(0, 4) == 0) {
        later.push_back(std::move(order));
        continue;
      }
      if (order.kind == Order::Kind::undo) {
        ladder.take_undo_result(order, "");
        held[order.climb].erase(order.step);
        continue;
      }
      const auto kind = *rc::gen::element(ActResult::Kind::done, ActResult::Kind::done, ActResult::Kind::failed);
      const bool holds = find_action(order.action)->undo != nullptr && kind == ActResult::Kind::done;
      ladder.take_result(order, {kind, {}, holds ? "state" : "", o.time});
      if (holds) held[order.climb].insert(order.step);
      last_step[order.climb] = order.step;
      last_time[order.climb] = o.time;
    }
    out = std::move(later);
  }
  // When it is switched off, everything is undone within a few ticks.
  for (int i = 0; i < 10; ++i) {
    for (Order& order : out)
      if (order.kind == Order::Kind::undo)
        ladder.take_undo_result(order, ""), held[order.climb].erase(order.step);
      else
        ladder.take_result(order, {ActResult::Kind::failed, {}, {}, at(now_s)});
    out.clear();
    ladder.switch_off(true, "off");
    now_s += 1;
    for (Order& order : ladder.advance(seen(now_s, {})))
      if (order.kind == Order::Kind::act || order.kind == Order::Kind::undo) out.push_back(std::move(order));
  }
  for (const auto& [climb, steps] : held) RC_ASSERT(steps.empty());
  RC_ASSERT(ladder.climbs().empty());
}

TEST(Ladder, SaysHowLongBeforeTheEndItNeedsItsAlerts) {
  EXPECT_EQ(Ladder::needs_s(policies_of("[[policy]]\nname = \"a\"\nsteps = [ { do = \"notify\", after = \"2h\" } ]\n")),
            0);
  EXPECT_EQ(Ladder::needs_s(policies_of(kLadder)), 10) << "frozen, it does not grow";
  EXPECT_EQ(Ladder::needs_s(policies_of(R"([[policy]]
name = "stubborn"
when = { user = "alice", held-for = "5min" }
steps = [ { do = "terminate", after = "10min" }, { do = "notify" }, { do = "kill", after = "1h" }, { do = "notify", after = "9h" } ]
)")),
            75 * 60)
      << "what ignores SIGTERM must have been killed by then";
  EXPECT_EQ(Ladder::needs_s(policies_of(R"([[policy]]
name = "hangs"
when.kind = "stalled"
steps = [ { do = "terminate" }, { do = "kill", after = "3h" } ]
)")),
            0);
  const std::string slow = R"([[policy]]
name = "slow checkpoint"
steps = [ { do = "checkpoint", signal = "SIGUSR1", usually-takes = "90min" }, { do = "terminate", after = "90min" } ]
)";
  EXPECT_EQ(Ladder::needs_s(policies_of(slow)), 1.25 * 5400 + 10);
  EXPECT_EQ(Ladder::needs_s(policies_of(R"([[policy]]
name = "slow and stubborn"
steps = [ { do = "checkpoint", signal = "SIGUSR1", usually-takes = "90min" }, { do = "terminate" }, { do = "kill", after = "30min" } ]
)")),
            120 * 60);
  const std::string early = R"([[policy]]
name = "early"
when.ends-within = "4h"
steps = [ { do = "notify" } ]
)";
  EXPECT_EQ(Ladder::needs_s(policies_of(slow + early)), 4 * 3600);
}

}  // namespace
}  // namespace vramtrack::act

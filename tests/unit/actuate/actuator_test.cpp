#include "actuate/actuator.hpp"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "../temp_folder.hpp"
#include "act/audit.hpp"
#include "act/slurm.hpp"
#include "fleet_views.hpp"

namespace vramtrack::actuate {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char* const kPolicy = R"([[policy]]
name = "leaks"
when.user = ["alice"]
when.job = [".*"]
when.labels = { alertname = "GpuMemoryLeak" }
steps = [
  { do = "signal-job", signal = "SIGUSR1" },
  { do = "drain" },
  { do = "requeue", after = "30s", timeout = "1s" },
]
)";

/// Machines with agents, and a Slurm that runs job 7 on each of them (queried for one node at a time).
struct Fleet {
  std::mutex mutex;
  std::map<std::string, Witness> agents;  ///< by address
  std::vector<std::string> asked;         ///< addresses
  std::vector<std::string> commands;      ///< commands that change something
  std::string job_state = "RUNNING";
  std::string excluded = "(null)";
  bool runs_elsewhere = false;
  std::uint64_t left_bytes = 0;  ///< memory of the job that is left after its end
  std::string saved = "0           (null)\n";
  std::map<std::string, std::string> drained;
  double now_s = 1;
  double age_s = 0;                                        ///< age of the agents' data
  std::function<void(const std::string& command)> obeyed;  ///< called after each command that changes something

  void leak_on(const std::string& node) { agents["http://" + node + ":9474"] = {node, leaking_view()}; }

  Result<Witness> ask(const std::string& url) {
    const std::scoped_lock lock(mutex);
    asked.push_back(url);
    const auto it = agents.find(url);
    if (it == agents.end()) return fail(url + ": the connection failed");
    Witness witness = it->second;
    for (SeriesView& series : witness.view.series) series.last = at(now_s - age_s);
    witness.view.time = at(now_s - age_s);
    return witness;
  }

  Result<std::string> run(const std::vector<std::string>& argv) {
    const std::scoped_lock lock(mutex);
    const std::string line = fmt::format("{}", fmt::join(argv, " "));
    if (argv[0] == "squeue" && argv.back() == "%A") return std::string(runs_elsewhere ? "" : "7\n");
    if (argv[0] == "squeue" && argv.back() == act::kSlurmSavedFormat) return saved;
    if (argv[0] == "squeue" && argv.back() == "%T") return job_state + "\n";
    if (argv[0] == "squeue") return "7|7|N/A|" + job_state + "|alice|1000|gn1|" + excluded + "\n";
    if (argv[0] == "sinfo") {
      const std::string node = argv[4];
      return drained.contains(node) ? "drained|" + drained[node] + "\n" : std::string("mixed|none\n");
    }
    commands.push_back(line);
    if (line.starts_with("scontrol update NodeName=") && argv[3] == "State=DRAIN")
      drained[argv[2].substr(9)] = argv[4].substr(7);
    if (line.starts_with("scontrol update NodeName=") && argv[3] == "State=RESUME") drained.erase(argv[2].substr(9));
    if (line.find("ExcNodeList=gn1") != std::string::npos) excluded = "gn1";
    if (line == "scontrol requeue 7") {
      job_state = "PENDING";
      for (auto& [url, witness] : agents)
        if (witness.view.series.size() == 2) witness.view = empty_view(left_bytes);
    }
    if (obeyed) obeyed(line);
    return std::string();
  }
};

class Acting {
 public:
  explicit Acting(Fleet& given, const std::string& toml = kPolicy) : fleet(given), toml_(toml) { open(); }

  void open() {
    actuator.reset();
    ActuatorOptions options;
    options.policies = *act::parse_policies(toml_, "p.toml");
    options.act.dry_run = dry_run;
    options.act.max_acts_per_hour = 100;
    options.hosts = *AgentHosts::parse({"gn*"});
    options.limits = fleet_limits(limits);
    options.folder = folder.path();
    options.own_user = "slurm";
    options.ask = [this](const std::string& url) { return fleet.ask(url); };
    options.rescan = rescan;
    options.tools.run = [this](const std::vector<std::string>& argv, double) { return fleet.run(argv); };
    options.now = [this] { return at(fleet.now_s); };
    options.log = [this](const std::string& text) { logged.push_back(text); };
    options.at_point = at_point;
    auto opened = Actuator::open(std::move(options));
    ASSERT_TRUE(opened) << opened.error().message;
    actuator = std::move(*opened);
  }

  std::size_t hear(const std::string& node, bool is_firing = true, const std::string& fingerprint = "ab") {
    const act::Claim one = alert_of(node, fingerprint);
    Webhook webhook;
    webhook.alerts.push_back({is_firing, one.fingerprint, one.starts_at, one.labels, {}});
    const auto taken = actuator->take(webhook);
    EXPECT_TRUE(taken);
    return taken.value_or(0);
  }

  /// Runs rounds until time `to_s`, one per second.
  void until(double to_s) {
    for (; fleet.now_s < to_s; fleet.now_s += 1) {
      actuator->tick();
      ASSERT_TRUE(actuator->wait_for_orders(60));
    }
  }

  [[nodiscard]] std::vector<std::string> record() const {
    std::vector<std::string> out;
    const auto entries = act::read_audit(folder.path() + "/actuate.acts.jsonl");
    if (entries)
      for (const act::AuditEntry& e : *entries)
        if (e.event != "claim")
          out.push_back(e.action.empty()     ? e.event + ": " + e.text
                        : e.event == "waits" ? e.action + " waits: " + e.text
                                             : e.action + ' ' + e.event);
    return out;
  }
  [[nodiscard]] act::Climb only_alert() const { return actuator->summary().alerts_known.at(0); }
  [[nodiscard]] bool is_over() const { return only_alert().phase == act::Climb::Phase::over; }

  Fleet& fleet;
  const TempFolder folder;
  std::string toml_;
  bool dry_run = false;
  ActuateConfig limits;
  Rescan rescan;
  std::function<void(std::string_view, const act::Order&)> at_point;
  std::vector<std::string> logged;
  std::unique_ptr<Actuator> actuator;
};

const std::vector<std::string> kWhole = {
    "scancel --batch --signal=USR1 7",
    "scontrol update NodeName=gn1 State=DRAIN Reason=",
    "scontrol requeue 7",
    "scontrol update JobId=7 ExcNodeList=gn1 StartTime=now",
    "scontrol update NodeName=gn1 State=RESUME",
};

void expect_commands(const Fleet& fleet, const std::vector<std::string>& wanted) {
  ASSERT_EQ(fleet.commands.size(), wanted.size()) << fmt::format("{}", fmt::join(fleet.commands, "\n"));
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_THAT(fleet.commands[i], HasSubstr(wanted[i]));
}

TEST(Actuator, AsksForACheckpointMovesTheJobAndResumesTheNodeWhenItsMemoryIsBack) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  EXPECT_EQ(acting.hear("gn1"), 1U);
  acting.until(20);
  EXPECT_EQ(fleet.commands.size(), 2U) << "the job has 30 s for its checkpoint";
  EXPECT_THAT(fleet.drained["gn1"], HasSubstr("policy leaks, pid 4242, job 7.batch"));
  acting.until(60);
  expect_commands(fleet, kWhole);
  EXPECT_TRUE(acting.is_over());
  EXPECT_THAT(acting.record().back(), HasSubstr("were freed"));
  EXPECT_THAT(summary_metrics(acting.actuator->summary()),
              HasSubstr("vramtrack_acts_total{action=\"requeue\",outcome=\"done\"} 1\n"));
}

TEST(Actuator, AsksNoHostThatIsNotListed) {
  Fleet fleet;
  fleet.leak_on("gn1");
  fleet.agents["http://evil.example:9474"] = {"gn1", leaking_view()};
  Acting acting(fleet);
  act::Claim one = alert_of("gn1");
  one.labels["instance"] = "evil.example:9474";
  ASSERT_TRUE(acting.actuator->take({{}, {}, 0, {{true, one.fingerprint, one.starts_at, one.labels, {}}}}));
  acting.until(60);
  EXPECT_THAT(fleet.commands, IsEmpty());
  EXPECT_THAT(fleet.asked, Not(Contains("http://evil.example:9474")));
  EXPECT_EQ(acting.only_alert().refusal, "not_listed");
}

TEST(Actuator, AnAgentOfAnotherNodeIsNoWitness) {
  Fleet fleet;
  fleet.leak_on("gn5");
  Acting acting(fleet);
  act::Claim one = alert_of("gn1");
  one.labels["instance"] = "gn5:9474";  // it is listed, and leaks
  ASSERT_TRUE(acting.actuator->take({{}, {}, 0, {{true, one.fingerprint, one.starts_at, one.labels, {}}}}));
  acting.until(30);
  EXPECT_THAT(fleet.commands, IsEmpty());
  EXPECT_EQ(acting.only_alert().refusal, "mismatch");
}

TEST(Actuator, WhatAnAgentSaidLongAgoOrMakesUpIsNoEvidence) {
  const auto refusal_of = [](Fleet& fleet) {
    Acting acting(fleet);
    bool is_rescanned = false;
    acting.rescan = [&](const Labels&) -> Result<Witness> {
      is_rescanned = true;
      return Witness{"gn1", leaking_view(), {}};
    };
    acting.open();
    acting.hear("gn1");
    acting.until(fleet.now_s + 60);
    EXPECT_THAT(fleet.commands, IsEmpty());
    EXPECT_FALSE(is_rescanned) << "its metrics are no better";
    return acting.only_alert().refusal;
  };
  for (const double age_s : {3600.0, -3600.0}) {
    Fleet fleet;
    fleet.leak_on("gn1");
    fleet.age_s = age_s;
    EXPECT_EQ(refusal_of(fleet), "not_current") << age_s;
  }
  Fleet fleet;
  fleet.leak_on("gn1");
  fleet.agents.begin()->second.simulated = "training job";
  EXPECT_EQ(refusal_of(fleet), "not_current");
}

TEST(Actuator, AnAgentThatStopsSamplingMakesTheLadderWait) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.hear("gn1");
  acting.until(10);
  EXPECT_EQ(fleet.commands.size(), 2U);
  fleet.age_s = 3600;
  acting.until(2000);
  EXPECT_EQ(fleet.commands.size(), 2U) << "neither on nor back";
  fleet.age_s = 0;
  acting.until(2060);
  expect_commands(fleet, kWhole);
}

TEST(Actuator, ANodeWhoseMemoryDoesNotComeBackStaysDrained) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.hear("gn1");
  fleet.left_bytes = 5'000'000'000;
  acting.until(120);
  EXPECT_EQ(fleet.commands.size(), 4U);
  EXPECT_TRUE(fleet.drained.contains("gn1"));
  EXPECT_THAT(acting.record(), Contains(HasSubstr("were not freed within")));
  EXPECT_TRUE(acting.is_over());
}

TEST(Actuator, ADryRunSaysExactlyWhatItWouldDoAndDoesNothing) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.dry_run = true;
  acting.open();
  acting.hear("gn1");
  acting.until(60);
  EXPECT_THAT(fleet.commands, IsEmpty());
  EXPECT_THAT(acting.logged, Contains(HasSubstr("would: send SIGUSR1 to the Slurm job 7.batch of pid 4242 (python "
                                                "train.py, user alice) on gn1")));
  EXPECT_THAT(acting.logged, Contains(HasSubstr("would: drain the node gn1 in Slurm")));
  EXPECT_THAT(acting.logged, Contains(HasSubstr("would: requeue the Slurm job 7.batch")));
  acting.open();
  acting.until(70);
  const auto record = acting.record();
  EXPECT_EQ(std::count(record.begin(), record.end(), "requeue would"), 1) << "a restart is no reason to say it again";
  EXPECT_TRUE(acting.is_over());
  acting.dry_run = false;
  acting.open();
  acting.until(140);
  expect_commands(fleet, kWhole);
}

TEST(Actuator, RepeatsOfAnAlertAreNothingNewEvenAfterItsLadder) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.hear("gn1");
  for (int i = 0; i < 5; ++i) {
    acting.until(10 * (i + 2));
    EXPECT_EQ(acting.hear("gn1"), 0U);
    acting.open();
  }
  acting.until(80);
  expect_commands(fleet, kWhole);
  // The same job leaks again as another process with the same pid, under the same alert: Alertmanager never saw a gap.
  fleet.leak_on("gn1");
  fleet.agents["http://gn1:9474"].view.series[1].key.pid_start_ticks = 999;
  acting.hear("gn1");
  acting.until(200);
  EXPECT_EQ(fleet.commands.size(), kWhole.size());
}

TEST(Actuator, TwoAlertsOfOneProcessAreOneLadder) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.hear("gn1", true, "a1");
  acting.hear("gn1", true, "a2");
  acting.until(10);
  EXPECT_EQ(fleet.commands.size(), 2U);
  // One of the two rules stops firing: the other one still fires.
  acting.hear("gn1", false, "a1");
  acting.until(60);
  expect_commands(fleet, kWhole);
  // The evidence returns: both have had their ladder, even after a restart.
  fleet.leak_on("gn1");
  fleet.job_state = "RUNNING";
  for (int i = 0; i < 2; ++i) {
    acting.open();
    acting.hear("gn1", true, "a1");
    acting.until(120 + 60 * i);
  }
  EXPECT_EQ(fleet.commands.size(), kWhole.size());
  for (const act::Climb& one : acting.actuator->summary().alerts_known) EXPECT_EQ(one.phase, act::Climb::Phase::over);
}

TEST(Actuator, WhatFillsTheRecordDoesNotMakeItForgetAnAlertOrTheBreaker) {
  Fleet fleet;
  for (const char* node : {"gn1", "gn2"}) fleet.leak_on(node);
  Acting acting(fleet,
                "[[policy]]\nname = \"a\"\nwhen.user = \"alice\"\nwhen.job = \".*\"\n"
                "steps = [{ do = \"signal-job\" }]\n");
  acting.limits.breaker_nodes = 1;
  acting.open();
  acting.hear("gn1", true, "a1");
  acting.until(5);
  acting.hear("gn1", false, "a1");
  acting.until(10);
  acting.hear("gn2", true, "a2");
  acting.until(15);
  ASSERT_TRUE(acting.actuator->summary().breaker);
  const std::string path = acting.folder.path() + "/actuate.acts.jsonl";
  for (int i = 0; i < 2; ++i) {
    acting.actuator.reset();
    const std::string filler(act::Journal::kFullBytes - std::filesystem::file_size(path), ' ');
    std::ofstream(path, std::ios::app) << filler << '\n';
    acting.open();
    acting.hear("gn1", true, fmt::format("b{}", i));  // the first line of the next file
    acting.until(20 + i);
  }
  acting.open();
  EXPECT_TRUE(acting.actuator->summary().breaker);
  EXPECT_EQ(acting.hear("gn1", true, "a1"), 0U);
  acting.until(40);
  EXPECT_EQ(fleet.commands.size(), 1U);
}

TEST(Actuator, WithoutEvidenceNothingIsDoneAndTheRecordSaysWhy) {
  struct Situation {
    std::function<void(Fleet&)> make;
    const char* refusal;
    const char* why;
  };
  const Situation situations[] = {
      {[](Fleet& f) { f.agents.clear(); }, "no_agent", "the connection failed"},
      {[](Fleet& f) { f.agents["http://gn1:9474"].host = "gn9"; }, "mismatch", "the agent that was asked is on gn9"},
      {[](Fleet& f) { f.agents["http://gn1:9474"].view.series[1].key.pid = 1; }, "mismatch",
       "the agent's alert is about pid 1"},
      {[](Fleet& f) { f.agents["http://gn1:9474"].view.series[1].process->slurm_job = "8"; }, "mismatch",
       "belongs to job 8"},
      {[](Fleet& f) { f.agents["http://gn1:9474"].view.series[1].alerts.clear(); }, "no_evidence",
       "no alert is active on gn1"},
      {[](Fleet& f) { f.agents["http://gn1:9474"].view.series[1].process->user = "bob"; }, "no_policy",
       "its user is 'bob'"},
  };
  for (const Situation& situation : situations) {
    Fleet fleet;
    fleet.leak_on("gn1");
    situation.make(fleet);
    Acting acting(fleet);
    acting.hear("gn1");
    acting.until(60);
    EXPECT_THAT(fleet.commands, IsEmpty()) << situation.refusal;
    EXPECT_EQ(acting.actuator->summary().refused.at(situation.refusal), 1U) << "once, not in every round";
    EXPECT_EQ(acting.only_alert().refusal, situation.refusal);
    EXPECT_THAT(acting.record(), ElementsAre(AllOf(HasSubstr("refused"), HasSubstr(situation.why))));
    acting.open();
    acting.until(70);
    EXPECT_EQ(acting.record().size(), 1U) << "not again after a restart";
    EXPECT_EQ(acting.only_alert().refusal, situation.refusal);
  }
}

TEST(Actuator, ALabelThatNamesManyNodesIsRefused) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  act::Claim one = alert_of("gn1");
  one.labels["Hostname"] = "gn[1-4]";
  ASSERT_TRUE(acting.actuator->take({{}, {}, 0, {{true, one.fingerprint, one.starts_at, one.labels, {}}}}));
  acting.until(10);
  EXPECT_EQ(acting.only_alert().refusal, "bad_label");
  EXPECT_THAT(fleet.commands, IsEmpty());
}

TEST(Actuator, EvidenceThatEndsBetweenTwoStepsEndsTheLadder) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.hear("gn1");
  acting.until(10);
  fleet.agents["http://gn1:9474"].view.series[1].alerts.clear();
  acting.until(60);
  EXPECT_THAT(fleet.commands.back(), HasSubstr("State=RESUME"));
  EXPECT_THAT(fleet.commands, Not(Contains(HasSubstr("requeue"))));
  EXPECT_TRUE(acting.is_over());
}

TEST(Actuator, AJobThatTellsOfItsCheckpointIsNotLeftWaiting) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.hear("gn1");
  acting.until(5);
  EXPECT_EQ(fleet.commands.size(), 2U);
  fleet.saved = "1           vramtrack saved 0\n";  // from the previous run
  acting.until(8);
  EXPECT_EQ(fleet.commands.size(), 2U);
  fleet.saved = "1           vramtrack saved 1\n";
  acting.until(12);
  expect_commands(fleet, kWhole);
}

TEST(Actuator, AResolvedAlertEndsTheLadder) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.hear("gn1");
  acting.until(10);
  acting.hear("gn1", false);
  acting.until(60);
  EXPECT_THAT(fleet.commands, Not(Contains(HasSubstr("requeue"))));
  EXPECT_TRUE(acting.is_over());
}

TEST(Actuator, AJobThatSlurmRunsElsewhereIsNotTouched) {
  Fleet fleet;
  fleet.leak_on("gn1");
  fleet.runs_elsewhere = true;
  Acting acting(fleet);
  acting.hear("gn1");
  acting.until(60);
  EXPECT_THAT(fleet.commands, IsEmpty());
  EXPECT_THAT(acting.record(), Contains("signal-job refused"));
}

TEST(Actuator, AnAgentThatFallsSilentHoldsTheLadderWhereItIs) {
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.hear("gn1");
  acting.until(10);
  const auto agents = fleet.agents;
  fleet.agents.clear();
  acting.until(2000);
  EXPECT_EQ(fleet.commands.size(), 2U) << "neither on nor back";
  fleet.agents = agents;
  acting.until(2050);
  expect_commands(fleet, kWhole);
}

TEST(Actuator, WhereNoAgentAnswersARescanMay) {
  Fleet fleet;
  Acting acting(fleet, "[[policy]]\nname = \"nodes\"\nsteps = [{ do = \"drain\" }]\n");
  View scanned = leaking_view();
  scanned.series[0].alerts = scanned.series[1].alerts;
  scanned.series[0].verdict = scanned.series[1].verdict;
  scanned.series.pop_back();  // no processes are known
  int asked = 0;
  acting.rescan = [&](const Labels& labels) -> Result<Witness> {
    ++asked;
    EXPECT_EQ(labels.at("UUID"), "GPU-1");
    return Witness{"", scanned};
  };
  acting.open();
  act::Claim one = alert_of("gn1");
  for (const char* name : {"pid", "slurm_job_id"}) one.labels.erase(name);
  ASSERT_TRUE(acting.actuator->take({{}, {}, 0, {{true, one.fingerprint, one.starts_at, one.labels, {}}}}));
  acting.until(5);
  expect_commands(fleet, {"scontrol update NodeName=gn1 State=DRAIN"});
  EXPECT_GT(asked, 1) << "again right before the act";
}

TEST(Actuator, TheBreakerOpensForTheFleetAndAPersonClosesIt) {
  Fleet fleet;
  for (const char* node : {"gn1", "gn2", "gn3"}) fleet.leak_on(node);
  Acting acting(fleet,
                "[[policy]]\nname = \"a\"\nwhen.user = \"alice\"\nwhen.job = \".*\"\n"
                "steps = [{ do = \"signal-job\" }, { do = \"signal-job\", after = \"20s\" }]\n");
  acting.limits.breaker_nodes = 2;
  acting.open();
  acting.hear("gn1", true, "a1");
  acting.hear("gn2", true, "a2");
  acting.until(5);
  EXPECT_EQ(fleet.commands.size(), 2U);
  acting.hear("gn3", true, "a3");
  acting.until(10);
  ASSERT_TRUE(acting.actuator->summary().breaker);
  acting.open();  // a restart does not close it
  EXPECT_EQ(acting.hear("gn3", true, "a3"), 0U) << "alerts are still taken in";
  acting.until(60);
  EXPECT_EQ(fleet.commands.size(), 2U) << "the second steps wait, too";
  EXPECT_THAT(acting.record(), Contains(HasSubstr("gn3 would be node number 3")));
  acting.limits.breaker_nodes = 3;
  acting.open();
  const auto closed = acting.actuator->reset({"alice", "looked at it"});
  ASSERT_TRUE(closed && *closed);
  EXPECT_FALSE(*acting.actuator->reset({"alice", ""})) << "it was not open";
  EXPECT_EQ(acting.actuator->summary().nodes_acted_on, 0U) << "or it would open again at once";
  acting.until(100);
  EXPECT_EQ(fleet.commands.size(), 6U);
  EXPECT_THAT(acting.record(), Contains(HasSubstr("was closed by alice: looked at it")));
}

/// Ends without cleanup, like kill -9, at `point` of the act `action`; then another run continues.
void killed_at(const std::string& point, const std::string& action) {
  SCOPED_TRACE(point + " of " + action);
  Fleet fleet;
  fleet.leak_on("gn1");
  Acting acting(fleet);
  acting.hear("gn1");
  acting.actuator.reset();  // its thread would not be in the child
  const pid_t child = ::fork();
  if (child == 0) {
    // The commands to Slurm must outlive the child: it is written to a file.
    const auto die = [&] {
      std::ofstream(acting.folder.path() + "/commands") << fmt::format("{}", fmt::join(fleet.commands, "\n"));
      ::_exit(0);
    };
    std::atomic<bool> has_ticked{false};
    acting.at_point = [&](std::string_view at, const act::Order& order) {
      if (at != point || order.action != action) return;
      if (point == "begin") has_ticked.wait(false);  // it begins, but is not on record
      die();
    };
    fleet.obeyed = [&](const std::string& command) {
      if (command == point) die();
    };
    acting.open();
    acting.actuator->tick();
    has_ticked = true;
    has_ticked.notify_all();
    acting.until(60);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0) << "it was killed where it should be";
  std::ifstream told(acting.folder.path() + "/commands");
  for (std::string line; std::getline(told, line);) fleet.commands.push_back(line);
  for (const std::string& line : fleet.commands)
    if (line.find("ExcNodeList=gn1") != std::string::npos) fleet.excluded = "gn1";
  for (const std::string& line : fleet.commands)
    if (line.find("State=DRAIN") != std::string::npos) fleet.drained["gn1"] = line.substr(line.find("Reason=") + 7);
  if (std::find(fleet.commands.begin(), fleet.commands.end(), "scontrol requeue 7") != fleet.commands.end()) {
    fleet.job_state = "PENDING";
    fleet.agents["http://gn1:9474"].view = empty_view();
  }
  fleet.now_s = 40;
  acting.open();
  acting.until(120);
  const auto times = [&fleet](const std::string& what) {
    return std::count_if(fleet.commands.begin(), fleet.commands.end(),
                         [&what](const std::string& line) { return line.find(what) != std::string::npos; });
  };
  EXPECT_EQ(times("scontrol requeue 7"), 1) << fmt::format("{}", fmt::join(fleet.commands, "\n"));
  EXPECT_EQ(times("ExcNodeList=gn1 StartTime=now"), 1);
  EXPECT_LE(times("--signal=USR1"), 1);
  EXPECT_EQ(times("State=RESUME"), 1);
  EXPECT_TRUE(fleet.drained.empty());
  EXPECT_TRUE(acting.is_over());
}

TEST(Actuator, KilledAtAnyMomentItNeitherRepeatsNorForgets) {
  killed_at("begin", "");
  for (const char* action : {"signal-job", "drain", "requeue"})
    for (const char* point : {"intent", "performed", "done"}) killed_at(point, action);
  killed_at("scontrol requeue 7", "requeue");  // between its halves
}

TEST(Actuator, OneFolderHasOneActuator) {
  Fleet fleet;
  Acting acting(fleet);
  ActuatorOptions options;
  options.folder = acting.folder.path();
  options.now = [] { return at(0); };
  const auto second = Actuator::open(std::move(options));
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another vramtrack is using"));
}

}  // namespace
}  // namespace vramtrack::actuate

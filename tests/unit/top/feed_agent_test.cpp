// top on an agent: the real Api and server on a Unix socket, in this process.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../report/sample_view.hpp"
#include "../temp_folder.hpp"
#include "agent/acknowledgements.hpp"
#include "agent/server/api.hpp"
#include "report/view_json.hpp"
#include "store/store.hpp"
#include "top/feed.hpp"

namespace vramtrack::top {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// As the console does for the program.
[[maybe_unused]] const auto kNoPipeSignal = std::signal(SIGPIPE, SIG_IGN);

/// The sample view, this many seconds later; its device has `used_bytes`.
View view_at(double later_s, std::uint64_t used_bytes = 12 * kGiB) {
  View view = sample_view();
  view.time = at(7199 + later_s);
  for (SeriesView& s : view.series) s.last = view.time;
  view.series[0].used_bytes = used_bytes;
  return view;
}

SeriesKey device_key() {
  return sample_view().series[0].key;
}

class AgentFeedTest : public testing::Test {
 protected:
  void SetUp() override {
    configure();
    start();
  }
  void TearDown() override {
    published_.close();
    stop();
  }

  void configure(const std::string& simulated = {}, const std::string& store_path = {}) {
    auto config = std::make_shared<agent::ApiConfig>();
    config->own_uid = ::geteuid();
    config->pid = 99;
    config->host = "node7";
    config->version = "1.2.3";
    config->simulated = simulated;
    config->store_path = store_path;
    api_.configure(std::move(config));
  }
  void start() {
    agent::HttpConfig http;
    http.socket = socket_;
    auto server = agent::HttpServer::start(http, api_.site());
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void stop() { server_.reset(); }
  void publish(View view) { published_.publish(std::make_shared<const View>(std::move(view)), {}); }

  [[nodiscard]] TopSource attach() const {
    auto source = agent_source(socket_);
    EXPECT_TRUE(source) << source.error().message;
    return source ? std::move(*source) : TopSource{};
  }
  /// Makes one step at that time; returns when the next is due.
  SteadyTime step(const TopSource& source, SteadyTime now) {
    changed_ = false;
    return source.step(now, changed_);
  }
  static Model described(const TopSource& source) {
    Model model;
    source.describe(model);
    return model;
  }
  /// The mean of each point of the device's history.
  static std::vector<double> history(const TopSource& source, Timestamp from, Timestamp to) {
    std::vector<double> bytes;
    for (const Point& point : source.feed.history(device_key(), from, to, 1000)) bytes.push_back(point.mean_bytes);
    return bytes;
  }

  const SteadyTime begin_{1h};
  TempFolder folder_;
  std::string socket_ = folder_.file("agent.sock");
  agent::Published published_;
  agent::Acknowledgements acknowledgements_{""};
  Silences silences_{""};
  agent::Api api_{published_, acknowledgements_, silences_, [] { return at(9000); }};
  std::unique_ptr<agent::HttpServer> server_;
  bool changed_ = false;
};

TEST_F(AgentFeedTest, ShowsTheAgentsViewAtOnce) {
  publish(sample_view());
  const TopSource source = attach();
  EXPECT_EQ(view_json(*source.view()), view_json(sample_view()));
  EXPECT_FALSE(source.play) << "an agent's time is not ours to move";
}

TEST_F(AgentFeedTest, DescribesTheAgent) {
  View view = sample_view();
  view.series[0].interval_s = 5;
  view.series[1].interval_s = 2;
  view.warnings = {"one process is not visible"};
  publish(view);
  const Model model = described(attach());
  EXPECT_EQ(model.mode, Mode::agent);
  EXPECT_EQ(model.source, "agent pid 99");
  EXPECT_EQ(model.simulated, "");
  EXPECT_EQ(model.interval_s, 2) << "of the series that is polled most often";
  EXPECT_THAT(model.warnings, ElementsAre("one process is not visible"));
  EXPECT_THAT(model.recording, IsEmpty());
  EXPECT_FALSE(model.playback);
}

TEST_F(AgentFeedTest, NamesTheScenarioOfAnAgentThatSimulates) {
  configure("leaking_training");
  publish(sample_view());
  EXPECT_EQ(described(attach()).simulated, "leaking_training");
}

/// The reports about it, once the agent has answered.
SitesNow sites_of(const TopSource& source, std::uint32_t pid) {
  for (;;) {
    SitesNow now = source.feed.sites(pid);
    if (now.state != SitesNow::State::unknown) return now;
    std::this_thread::yield();
  }
}

TEST_F(AgentFeedTest, AProcessOfNoRunHasNoLines) {
  publish(sample_view());
  const TopSource source = attach();
  EXPECT_EQ(sites_of(source, static_cast<std::uint32_t>(::getpid())).state, SitesNow::State::not_probed)
      << "the agent simulates";
  auto config = std::make_shared<agent::ApiConfig>();
  config->own_uid = ::geteuid();
  config->sites = std::make_shared<agent::ProbedSites>();
  api_.configure(std::move(config));
  EXPECT_EQ(sites_of(source, static_cast<std::uint32_t>(::getppid())).state, SitesNow::State::not_probed);
}

TEST_F(AgentFeedTest, NobodyListensIsAnErrorWithTheNextStep) {
  const std::string nobody = folder_.file("nobody.sock");
  const auto source = agent_source(nobody);
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().message, AllOf(HasSubstr(nobody), HasSubstr("'vramtrack agent' starts one")));
  stop();
  const auto gone = agent_source(socket_);
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error().message, HasSubstr(socket_));
}

TEST_F(AgentFeedTest, AnAgentWithoutASampleIsAnError) {
  const auto source = agent_source(socket_);
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().message, AllOf(HasSubstr(socket_), HasSubstr("nothing has been sampled yet")));
}

TEST_F(AgentFeedTest, AsksOnceAnIntervalAndTellsWhatHasChanged) {
  publish(view_at(0));
  const TopSource source = attach();
  EXPECT_EQ(step(source, begin_), begin_ + 1s) << "the interval of the agent's series";
  EXPECT_FALSE(changed_) << "it is the view of the start";

  publish(view_at(1, 13 * kGiB));
  const std::uint64_t requests = server_->requests();
  EXPECT_EQ(step(source, begin_ + 999ms), begin_ + 1s);
  EXPECT_FALSE(changed_);
  EXPECT_EQ(server_->requests(), requests) << "not before it is due";
  EXPECT_EQ(source.view()->time, at(7199));

  EXPECT_EQ(step(source, begin_ + 1s), begin_ + 2s);
  EXPECT_TRUE(changed_);
  EXPECT_EQ(source.view()->time, at(7200));
  EXPECT_EQ(source.view()->series.at(0).used_bytes, 13 * kGiB);

  step(source, begin_ + 2s);
  EXPECT_FALSE(changed_);
  View without_process = view_at(1);
  without_process.series.pop_back();
  publish(without_process);
  step(source, begin_ + 3s);
  EXPECT_TRUE(changed_) << "a process less at the same time";
}

TEST_F(AgentFeedTest, FastAgentsAreAskedFiveTimesASecondAtMost) {
  View view = view_at(0);
  view.series[1].interval_s = 0.01;
  publish(view);
  const TopSource source = attach();
  EXPECT_EQ(step(source, begin_), begin_ + 200ms);
  for (SeriesView& s : view.series) s.interval_s = 0;  // one sample so far
  publish(view);
  EXPECT_EQ(step(source, begin_ + 200ms), begin_ + 1200ms);
}

TEST_F(AgentFeedTest, WhatHasBeenSeenIsHistory) {
  publish(view_at(0, 1000));
  const TopSource source = attach();
  step(source, begin_);
  publish(view_at(1, 2000));
  step(source, begin_ + 1s);
  publish(view_at(3, 4000));
  step(source, begin_ + 2s);
  const std::uint64_t requests = server_->requests();
  EXPECT_EQ(history(source, at(7199), at(7203)), (std::vector<double>{1000, 2000, 4000}));
  EXPECT_EQ(history(source, at(7200), at(7203)), (std::vector<double>{2000, 4000}));
  EXPECT_EQ(history(source, at(7200), at(7202)), std::vector<double>{2000}) << "the end does not belong to it";
  EXPECT_EQ(server_->requests(), requests) << "the agent need not be asked for it";
}

class RecordingAgentFeedTest : public AgentFeedTest {
 protected:
  /// Records 100 more bytes of the device every 5 s for ten minutes, until a minute before the sample view.
  void record() {
    StoreConfig config;
    config.path = folder_.file("store.db");
    Catalog catalog;
    auto store = Store::open(config, catalog, first_);
    ASSERT_TRUE(store) << store.error().message;
    const SeriesId id = catalog.intern(device_key());
    for (int i = 0; i < 120; ++i) {
      Batch batch;
      batch.samples = {{first_ + 5s * i, id, 100 * (static_cast<std::uint64_t>(i) + 1)}};
      ASSERT_TRUE((*store)->append(batch));
    }
    ASSERT_TRUE((*store)->flush());
    configure({}, config.path);
  }
  const Timestamp first_ = at(7199 - 660);
};

TEST_F(RecordingAgentFeedTest, BeforeThatTheAgentsStoreIsHistory) {
  record();
  publish(view_at(0, 50'000));
  const TopSource source = attach();
  std::vector<double> expected;
  for (int i = 0; i < 120; ++i) expected.push_back(100 * (i + 1));
  expected.push_back(50'000);  // seen, not recorded
  EXPECT_EQ(history(source, first_, at(7200)), expected);
  const std::uint64_t requests = server_->requests();
  EXPECT_EQ(history(source, first_ + 5s, at(7201)), std::vector<double>(expected.begin() + 1, expected.end()));
  EXPECT_EQ(server_->requests(), requests) << "the past is asked for once";
  EXPECT_THAT(described(source).warnings, Not(Contains(HasSubstr("history"))));
}

TEST_F(RecordingAgentFeedTest, AHistoryBeginsWithTheRecording) {
  record();
  publish(view_at(0));
  const TopSource source = attach();
  EXPECT_EQ(source.feed.history_begin(device_key()), first_);
  const std::uint64_t requests = server_->requests();
  EXPECT_EQ(source.feed.history_begin(device_key()), first_);
  EXPECT_EQ(server_->requests(), requests);
}

TEST_F(AgentFeedTest, WithoutARecordingTheWarningSaysWhy) {
  publish(view_at(0, 1000));
  const TopSource source = attach();
  EXPECT_EQ(history(source, at(0), at(7200)), std::vector<double>{1000});
  EXPECT_THAT(described(source).warnings, Contains(AllOf(HasSubstr("the agent's history is not available"),
                                                         HasSubstr(socket_), HasSubstr("nothing is recorded"))));
  EXPECT_EQ(source.feed.history_begin(device_key()), std::nullopt);
}

TEST_F(AgentFeedTest, AnAgentThatGoesAwayIsAWarningAndAskedAgain) {
  publish(view_at(0));
  const TopSource source = attach();
  step(source, begin_);
  stop();
  EXPECT_EQ(step(source, begin_ + 1s), begin_ + 3s) << "less often than one that answers";
  EXPECT_TRUE(changed_);
  EXPECT_EQ(view_json(*source.view()), view_json(view_at(0))) << "the last one stays";
  const auto warnings = described(source).warnings;
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings.back(), AllOf(HasSubstr("the agent does not answer"), HasSubstr(socket_),
                                     HasSubstr("showing data from 2026-01-02T05:04:04Z")));

  start();
  publish(view_at(30, 14 * kGiB));
  EXPECT_EQ(step(source, begin_ + 2s), begin_ + 3s);
  EXPECT_EQ(source.view()->time, at(7199)) << "it is not time yet";
  EXPECT_EQ(step(source, begin_ + 3s), begin_ + 4s);
  EXPECT_TRUE(changed_);
  EXPECT_EQ(source.view()->series.at(0).used_bytes, 14 * kGiB);
  EXPECT_THAT(described(source).warnings, Not(Contains(HasSubstr("does not answer"))));
}

TEST_F(AgentFeedTest, ThatItIsBackIsAChangeOfItsOwn) {
  publish(view_at(0));
  const TopSource source = attach();
  step(source, begin_);
  stop();
  step(source, begin_ + 1s);
  start();
  step(source, begin_ + 3s);
  EXPECT_TRUE(changed_) << "the warning goes";
}

TEST_F(AgentFeedTest, AnAgentThatDoesNotAnswerIsNotAskedForHistory) {
  publish(view_at(0));
  const TopSource source = attach();
  step(source, begin_);
  stop();
  step(source, begin_ + 1s);
  EXPECT_THAT(history(source, at(0), at(7200)), testing::SizeIs(1));
  EXPECT_THAT(described(source).warnings.back(), HasSubstr("showing data from"));
}

TEST_F(AgentFeedTest, AHistoryThatFailedIsNotAskedForAtEveryDrawing) {
  publish(view_at(0));
  const TopSource source = attach();
  step(source, begin_);
  const auto requests = server_->requests();
  for (int drawing = 0; drawing < 10; ++drawing) {
    history(source, at(0), at(7200));
    source.feed.history_begin(device_key());
  }
  EXPECT_EQ(server_->requests(), requests + 1);
  publish(view_at(1));
  step(source, begin_ + 1s);
  EXPECT_THAT(described(source).warnings, Contains(HasSubstr("history is not available"))) << "it does not flicker";
  step(source, begin_ + 5s);
  const auto later = server_->requests();
  history(source, at(0), at(7200));
  EXPECT_EQ(server_->requests(), later + 1) << "asked again after a while";
}

TEST_F(AgentFeedTest, AnotherAgentInItsPlaceIsNoticed) {
  publish(view_at(0));
  const TopSource source = attach();
  step(source, begin_);
  EXPECT_EQ(described(source).simulated, "");
  configure("churn");
  step(source, begin_ + 5s);
  EXPECT_EQ(described(source).simulated, "churn");
}

TEST_F(AgentFeedTest, TheAgentHasTheAlertsOfBefore) {
  publish(view_at(0));
  const TopSource source = attach();
  EXPECT_THAT(described(source).earlier_alerts, IsEmpty());
  step(source, begin_);
  const Model model = described(source);
  ASSERT_EQ(model.earlier_alerts.size(), 1U);
  EXPECT_EQ(model.earlier_alerts[0].key, device_key());
  EXPECT_EQ(model.earlier_alerts[0].alert.raised, at(1500));
  EXPECT_EQ(model.earlier_alerts[0].alert.severity, Severity::critical);
  EXPECT_THAT(model.earlier_alerts[0].who, HasSubstr("GPU 0"));
  EXPECT_THAT(model.acknowledged, IsEmpty());
  step(source, begin_ + 5s);
  EXPECT_EQ(described(source).earlier_alerts.size(), 1U) << "asked for again, it is the same one";
}

TEST_F(AgentFeedTest, AnAcknowledgementReachesTheAgent) {
  publish(view_at(0));
  const TopSource source = attach();
  step(source, begin_);
  const AlertId alert{device_key(), at(1500)};
  const std::string id = alert_id(alert.key, alert.raised);
  ASSERT_EQ(acknowledgements_.find(id), std::nullopt);
  const Status done = source.acknowledge(alert);
  ASSERT_TRUE(done) << done.error().message;
  const auto kept = acknowledgements_.find(id);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->time, at(9000));
  EXPECT_TRUE(described(source).acknowledged.contains(alert)) << "at once";
  step(source, begin_ + 5s);
  EXPECT_TRUE(described(source).acknowledged.contains(alert)) << "and when the agent says so itself";
}

TEST_F(AgentFeedTest, AnAlertThatTheAgentDoesNotKnowIsNotAcknowledged) {
  publish(view_at(0));
  const TopSource source = attach();
  const Status done = source.acknowledge({device_key(), at(1)});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("no alert with that id"));
  EXPECT_THAT(described(source).acknowledged, IsEmpty());
}

TEST_F(AgentFeedTest, WhatOthersAcknowledgeIsSeenWithinFiveSeconds) {
  publish(view_at(0));
  const TopSource source = attach();
  step(source, begin_);
  const AlertId alert{device_key(), at(1500)};
  const std::string id = alert_id(alert.key, alert.raised);
  ASSERT_TRUE(acknowledgements_.set(id, {at(8000), "bob", ""}));
  step(source, begin_ + 1s);
  EXPECT_FALSE(described(source).acknowledged.contains(alert)) << "alerts are asked for less often than the view";
  step(source, begin_ + 5s);
  EXPECT_TRUE(described(source).acknowledged.contains(alert));
  ASSERT_TRUE(acknowledgements_.remove(id));
  step(source, begin_ + 10s);
  EXPECT_FALSE(described(source).acknowledged.contains(alert)) << "bob has taken it back";
}

}  // namespace
}  // namespace vramtrack::top

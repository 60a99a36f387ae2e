// The client against the real Api and server on a Unix socket.
#include "agent/client.hpp"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "../report/sample_view.hpp"
#include "../temp_folder.hpp"
#include "agent/server/api.hpp"
#include "report/view_json.hpp"

namespace vramtrack::agent {
namespace {

using ::testing::HasSubstr;

/// As the console does for the program.
[[maybe_unused]] const auto kNoPipeSignal = std::signal(SIGPIPE, SIG_IGN);

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto config = std::make_shared<ApiConfig>();
    config->own_uid = ::geteuid();
    config->pid = 99;
    config->host = "node7";
    config->version = "1.2.3";
    config->marks = marks_;
    api_.configure(std::move(config));
    HttpConfig http;
    http.socket = folder_.file("agent.sock");
    auto server = HttpServer::start(http, api_.site());
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    client_.emplace(http.socket);
  }
  void TearDown() override {
    published_.close();
    server_.reset();
  }
  TempFolder folder_;
  Published published_;
  Acknowledgements acknowledgements_{""};
  Silences silences_{""};
  Api api_{published_, acknowledgements_, silences_, [] { return at(5000); }};
  std::shared_ptr<MarkBox> marks_ = std::make_shared<MarkBox>();
  std::unique_ptr<HttpServer> server_;
  std::optional<AgentClient> client_;
};

TEST_F(ClientTest, TheViewIsTheAgents) {
  EXPECT_THAT(client_->view().error().message, HasSubstr("nothing has been sampled yet"));
  published_.publish(std::make_shared<const View>(sample_view()), {});
  const auto view = client_->view();
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view_json(*view), view_json(sample_view()));
}

TEST_F(ClientTest, AlertsAreAcknowledged) {
  published_.publish(std::make_shared<const View>(sample_view()), {});
  auto alerts = client_->alerts();
  ASSERT_TRUE(alerts) << alerts.error().message;
  ASSERT_EQ(alerts->size(), 1U);
  EXPECT_EQ(alerts->front().key.device_id, "GPU-1");
  EXPECT_EQ(alerts->front().device.id, "GPU-1");
  EXPECT_EQ(alert_id(alerts->front().key, alerts->front().alert.raised), alerts->front().id);
  EXPECT_FALSE(alerts->front().acknowledged);
  ASSERT_TRUE(client_->acknowledge(alerts->front().id, "known"));
  alerts = client_->alerts();
  ASSERT_TRUE(alerts);
  EXPECT_TRUE(alerts->front().acknowledged) << "the list is not an old one";
  EXPECT_EQ(alerts->front().note, "known");
  EXPECT_EQ(alerts->front().acknowledged_by, user_name(::geteuid()));
  EXPECT_THAT(client_->acknowledge("0000000000000000", "").error().message, HasSubstr("no alert with that id"));
}

/// A view with process 4242, which belongs to that user.
std::shared_ptr<const View> with_process(const std::string& user) {
  View view = sample_view();
  SeriesView& s = view.series.emplace_back();
  s.key = {Metric::process_used, "GPU-1", 4242, 7};
  s.device.id = "GPU-1";
  s.process.emplace();
  s.process->pid = 4242;
  s.process->start_ticks = 7;
  s.process->user = user;
  return std::make_shared<const View>(view);
}

TEST_F(ClientTest, AMarkIsOnItsWayToTheLoop) {
  published_.publish(with_process("ada"), {});
  ASSERT_TRUE(client_->mark({{4242}}, "step=12"));
  const std::vector<Event> marks = marks_->take();
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks.front().kind, Event::Kind::mark);
  EXPECT_EQ(marks.front().pid, 4242U);
  EXPECT_EQ(marks.front().pid_start_ticks, 7U);
  EXPECT_EQ(marks.front().text, "step=12");
  EXPECT_THAT(client_->mark({{999999}}, "step").error().message, HasSubstr("you have no process"));
  for (const char* const bad : {"", "=12", "step=abc", "step=", "step=-1", "step=1.5"})
    EXPECT_THAT(client_->mark({{4242}}, bad).error().message, HasSubstr("NAME=NUMBER"));
  EXPECT_THAT(client_->mark({{4242}}, std::string(65, 'x')).error().message, HasSubstr("at most 64 bytes"));
}

TEST_F(ClientTest, AMarkThatNamesNoProgramIsThatOfTheNearest) {
  View view = *with_process("ada");
  for (const std::uint32_t pid : {4243U, 4244U}) {
    view.series.push_back(view.series.back());
    view.series.back().key.pid = view.series.back().process->pid = pid;
  }
  published_.publish(std::make_shared<const View>(view), {});
  ASSERT_TRUE(client_->mark({{1}, {2, 3}, {7, 4243}, {4242}}, "step=12"));
  const std::vector<Event> marks = marks_->take();
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks.front().pid, 4243U) << "of the first group that has one";
  EXPECT_THAT(client_->mark({{1}, {4244, 2, 4243}}, "step").error().message,
              HasSubstr("such as pids 4244 and 4243; pass only the pid you mean"));
  EXPECT_THAT(client_->mark({{1}, {2}}, "step").error().message, HasSubstr("you have no process"));
  EXPECT_THAT(client_->mark({{0}}, "step").error().message, HasSubstr("no such pid"));
  EXPECT_TRUE(marks_->take().empty());
}

/// The view of a child in a pid namespace of its own, like a program in a container.
TEST_F(ClientTest, AClientInAnotherPidNamespaceGetsNothingOfOthers) {
  published_.publish(with_process(user_name(::geteuid())), {});
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t inner = ::fork();
    if (inner == 0) {
      const auto view = client_->view();
      if (!view || view->series.empty()) ::_exit(1);
      for (const SeriesView& s : view->series)
        if (s.key.pid != 0 || !s.alerts.empty()) ::_exit(2);
      if (client_->ask("/api/v1/status") || client_->ask("/metrics")) ::_exit(3);
      if (client_->mark({{4242}}, "step")) ::_exit(4);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no right to make a pid namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_TRUE(client_->view());
  EXPECT_TRUE(client_->mark({{4242}}, "step")) << "who is in the same namespace is answered as before";
}

TEST_F(ClientTest, WhoAnswers) {
  const auto version = client_->version();
  ASSERT_TRUE(version) << version.error().message;
  EXPECT_EQ(version->version, "1.2.3");
  EXPECT_EQ(version->pid, 99U);
  AgentConfig config;
  config.socket = client_->socket();
  EXPECT_EQ(find_agent(config), client_->socket());
  config.socket = folder_.file("nobody");
  EXPECT_EQ(find_agent(config), std::nullopt);
  EXPECT_THAT(AgentClient(config.socket).view().error().message, HasSubstr("'vramtrack agent' starts one"));
}

TEST_F(ClientTest, WithoutAStoreThereIsNoHistory) {
  const auto history = client_->history({Metric::device_used, "GPU 1/x", 0, 0}, at(0), at(10), 10);
  EXPECT_THAT(history.error().message, HasSubstr("nothing is recorded"));
}

// A hundred publications during queries by sixteen readers: each answer is a whole View from one of them.
TEST_F(ClientTest, ManyReadersOneWriter) {
  View first = sample_view();
  first.series[0].used_bytes = first.series[1].used_bytes;
  published_.publish(std::make_shared<const View>(first), {});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 16; ++i)
    readers.emplace_back([&] {
      for (int n = 0; n < 10; ++n) {
        const auto view = AgentClient(client_->socket()).view();
        if (!view || view->series.size() != 2 || view->series[0].used_bytes != view->series[1].used_bytes) ++wrong;
      }
    });
  for (std::uint64_t n = 0; n < 100; ++n) {
    View view = sample_view();
    view.series[0].used_bytes = view.series[1].used_bytes = n;
    published_.publish(std::make_shared<const View>(view), {});
    std::this_thread::yield();
  }
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong, 0);
  const auto last = client_->view();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->series[0].used_bytes, 99U);
}

}  // namespace
}  // namespace vramtrack::agent

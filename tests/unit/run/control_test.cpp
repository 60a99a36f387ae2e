#include "run/control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "../temp_folder.hpp"
#include "core/descriptor.hpp"
#include "patience.hpp"
#include "run/build_id.hpp"
#include "run/client/ask.hpp"
#include "run/client/socket_line.hpp"

namespace vramtrack::run {
namespace {

TEST(Control, ReadsItsRequests) {
  EXPECT_EQ(parse_control("limit 1024")->limit_bytes, 1024U);
  EXPECT_EQ(parse_control("soft-limit 0")->soft_limit_bytes, 0U);
  EXPECT_EQ(parse_control("mark after warm-up")->mark, "after warm-up");
  EXPECT_TRUE(parse_control("status")->asks_status);
  EXPECT_TRUE(parse_control("report")->asks_report);
  EXPECT_TRUE(parse_control("categories")->asks_categories);
  EXPECT_EQ(parse_control("kept")->kept, 0U);
  EXPECT_EQ(parse_control("kept 3")->kept, 3U);
  for (const char* wrong : {"", "limit", "limit 20GiB", "limit -1", "mark", "stop", "status now", "kept all"}) {
    const auto request = parse_control(wrong);
    ASSERT_FALSE(request) << wrong;
    EXPECT_NE(request.error().message, "");
  }
}

TEST(Control, AnswersItsUser) {
  const TempFolder folder;
  auto control = ControlSocket::open(folder.path());
  ASSERT_TRUE(control) << control.error().message;
  Result<std::string> good = fail("");
  Result<std::string> bad = fail("");
  std::atomic<bool> is_done = false;
  std::thread asks([&] {
    good = ask_control(folder.path(), "limit 7");
    bad = ask_control(folder.path(), "limit seven");
    is_done = true;
  });
  while (!is_done)
    control->serve(
        [](const ControlRequest& request) { return "ok " + std::to_string(request.limit_bytes.value_or(0)); });
  asks.join();
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(*good, "ok 7");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "'limit' needs a number of bytes, 0 for none");
}

TEST(Control, LongAnswersArriveWhole) {
  const TempFolder folder;
  auto control = ControlSocket::open(folder.path());
  ASSERT_TRUE(control) << control.error().message;
  const std::string report(3U << 20U, 'x');
  Result<std::string> got = fail("");
  std::atomic<bool> is_done = false;
  std::thread asks([&] {
    got = ask_control(folder.path(), "report");
    is_done = true;
  });
  while (!is_done) control->serve([&](const ControlRequest&) { return "ok " + report; });
  asks.join();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, "ok " + report);
}

TEST(Control, NobodyAnswersWhereNoRunIs) {
  const TempFolder folder;
  EXPECT_FALSE(ask_control(folder.path(), "status"));
}

TEST(Control, AnotherUsersRunIsNotAsked) {
  const TempFolder folder;
  auto control = ControlSocket::open(folder.path());
  ASSERT_TRUE(control) << control.error().message;
  const auto answer = ask_control(folder.path(), "status", kControlPatience, ::getuid() + 1);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, testing::HasSubstr("another user listens there"));
}

TEST(Control, ARunThatDoesNotAnswerIsWaitedForNoLonger) {
  const TempFolder folder;
  auto control = ControlSocket::open(folder.path());
  ASSERT_TRUE(control) << control.error().message;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(ask_control(folder.path(), "report", std::chrono::milliseconds{50}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, patience(std::chrono::seconds{2}));
}

TEST(Control, AFullQueueIsWaitedForNoLonger) {
  const TempFolder folder;
  auto control = ControlSocket::open(folder.path());
  ASSERT_TRUE(control) << control.error().message;
  sockaddr_un address{};
  ASSERT_TRUE(control_address(folder.path(), address));
  std::vector<std::unique_ptr<Descriptor>> waiting;
  do {
    waiting.push_back(std::make_unique<Descriptor>(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
    ASSERT_LT(waiting.size(), 1000U);
  } while (::connect(waiting.back()->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(ask_control(folder.path(), "report", std::chrono::milliseconds{50}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, patience(std::chrono::seconds{2}));
}

/// A folder of runs with one run: this process, which is also the probed process.
class ProbedProcesses : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* was = std::getenv("XDG_RUNTIME_DIR")) before_ = was;
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    const auto runs = runs_folder();
    ASSERT_TRUE(runs) << runs.error().message;
    runs_ = *runs;
    run_ = runs_ + "/" + std::to_string(::getpid());
    make(run_);
  }
  void TearDown() override {
    if (before_)
      ::setenv("XDG_RUNTIME_DIR", before_->c_str(), 1);
    else
      ::unsetenv("XDG_RUNTIME_DIR");
  }
  static void make(const std::string& path) { ASSERT_EQ(::mkdir(path.c_str(), 0700), 0) << path; }
  static void ring(const std::string& run, const std::string& name) { std::ofstream(run + "/ring." + name) << "ring"; }
  /// Only those in this test's runs: others may run on this machine.
  [[nodiscard]] std::vector<ProbedPid> found() const {
    auto all = probed_processes(::getuid());
    std::erase_if(all, [&](const ProbedPid& one) { return !one.folder.starts_with(folder_.path()); });
    return all;
  }

  const TempFolder folder_;
  std::optional<std::string> before_;
  std::string runs_;
  std::string run_;
};

TEST_F(ProbedProcesses, AreThoseWithARing) {
  EXPECT_THAT(found(), testing::IsEmpty());
  ring(run_, std::to_string(::getpid()));
  ring(run_, "2147483647");  // it has ended
  ring(run_, "x");
  ring(run_, "-1");
  EXPECT_THAT(found(), testing::ElementsAre(ProbedPid{static_cast<std::uint32_t>(::getpid()), run_}));
}

TEST_F(ProbedProcesses, ARunThatWasKilledHoldsNone) {
  const std::string gone = runs_ + "/2147483647";
  make(gone);
  ring(gone, std::to_string(::getpid()));
  EXPECT_THAT(found(), testing::IsEmpty());
}

TEST_F(ProbedProcesses, LinksAndOpenFoldersAreNotFollowed) {
  ring(run_, std::to_string(::getpid()));
  ASSERT_EQ(::chmod(run_.c_str(), 0755), 0);
  EXPECT_THAT(found(), testing::IsEmpty()) << "others may have put a ring there";
  ASSERT_EQ(::chmod(run_.c_str(), 0700), 0);
  EXPECT_EQ(found().size(), 1U);
  const std::string elsewhere = folder_.path() + "/elsewhere";
  std::filesystem::rename(run_, elsewhere);
  std::filesystem::create_symlink(elsewhere, run_);
  EXPECT_THAT(found(), testing::IsEmpty());
}

TEST_F(ProbedProcesses, OfAnotherUserAreNotThisUsers) {
  ring(run_, std::to_string(::getpid()));
  EXPECT_THAT(probed_processes(::getuid() + 1), testing::IsEmpty());
}

TEST(BuildId, IsThatOfReadelf) {
  const std::string id = build_id_of("/proc/self/exe");
  std::unique_ptr<FILE, int (*)(FILE*)> out(popen("readelf -n /proc/$PPID/exe 2>/dev/null", "r"), pclose);
  std::string text;
  char piece[256];
  while (fgets(piece, sizeof piece, out.get()) != nullptr) text += piece;
  if (text.find("Build ID") == std::string::npos) GTEST_SKIP() << "readelf shows no build id here";
  EXPECT_NE(text.find(id), std::string::npos) << id;
  EXPECT_FALSE(id.empty());
  EXPECT_EQ(build_id_of("/dev/null"), "");
  EXPECT_EQ(build_id_of("/etc/passwd"), "");
}

}  // namespace
}  // namespace vramtrack::run

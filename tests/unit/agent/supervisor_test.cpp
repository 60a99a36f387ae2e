#include "agent/supervisor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include "../temp_folder.hpp"

namespace vramtrack::agent {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

/// While the object lives, an environment variable has this value, or none.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* old = std::getenv(name); old != nullptr) old_ = old;
    set(value);
  }
  ~Variable() { set(old_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    if (value)
      ::setenv(name_, value->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

/// Whether `work` ends without help. After ten seconds, `help` is called repeatedly until it does end.
bool ends_by_itself(const std::function<void()>& work, const std::function<void()>& help) {
  const auto done = std::async(std::launch::async, work);
  if (done.wait_for(10s) == std::future_status::ready) return true;
  while (done.wait_for(10ms) != std::future_status::ready) help();
  return false;
}

/// A supervisor's socket. A name that starts with '@' is abstract.
class Supervisor {
 public:
  explicit Supervisor(const std::string& name) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    EXPECT_LT(name.size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0) << std::strerror(errno);
  }
  ~Supervisor() { ::close(fd_); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// The next datagram; nullopt if none has arrived. A datagram arrives as soon as it is sent.
  [[nodiscard]] std::optional<std::string> next() const {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (got < 0) return std::nullopt;
    return std::string(bytes.data(), static_cast<std::size_t>(got));
  }

 private:
  int fd_;
};

TEST(NotifySupervisor, SendsOneDatagramToTheSocketOfThatPath) {
  const TempFolder folder;
  const Supervisor supervisor(folder.file("notify.sock"));
  const Variable socket("NOTIFY_SOCKET", folder.file("notify.sock"));
  notify_supervisor("READY=1");
  notify_supervisor("STATUS=12 samples\nWATCHDOG=1");
  EXPECT_EQ(supervisor.next(), "READY=1");
  EXPECT_EQ(supervisor.next(), "STATUS=12 samples\nWATCHDOG=1");
  EXPECT_EQ(supervisor.next(), std::nullopt);
}

TEST(NotifySupervisor, SendsToAnAbstractName) {
  const std::string name = fmt::format("@vramtrack-supervisor-test-{}", ::getpid());
  const Supervisor supervisor(name);
  const Variable socket("NOTIFY_SOCKET", name);
  notify_supervisor("READY=1");
  EXPECT_EQ(supervisor.next(), "READY=1");
}

TEST(NotifySupervisor, SendsNothingWithoutASocketsName) {
  const TempFolder folder;
  const Supervisor supervisor(folder.file("notify.sock"));
  {
    const Variable socket("NOTIFY_SOCKET", folder.file("notify.sock"));
    notify_supervisor("READY=1");
    ASSERT_EQ(supervisor.next(), "READY=1");
  }
  for (const std::optional<std::string>& value : {std::optional<std::string>(), std::optional<std::string>("")}) {
    const Variable socket("NOTIFY_SOCKET", value);
    notify_supervisor("READY=1");
    EXPECT_EQ(supervisor.next(), std::nullopt);
  }
}

/// The longest name that fits in an address is used; one byte more is not truncated to another socket's name.
TEST(NotifySupervisor, SendsNothingToANameThatIsTooLong) {
  const TempFolder folder;
  std::string name = folder.file("");
  name.resize(sizeof(sockaddr_un::sun_path) - 1, 'n');
  const Supervisor supervisor(name);
  {
    const Variable socket("NOTIFY_SOCKET", name);
    notify_supervisor("READY=1");
    EXPECT_EQ(supervisor.next(), "READY=1");
  }
  for (const std::size_t more : {1U, 200U}) {
    const Variable socket("NOTIFY_SOCKET", name + std::string(more, 'n'));
    notify_supervisor("READY=1");
    EXPECT_EQ(supervisor.next(), std::nullopt) << more << " more";
  }
}

TEST(NotifySupervisor, ASupervisorThatHasGoneIsNoFailure) {
  const TempFolder folder;
  const Variable socket("NOTIFY_SOCKET", folder.file("nobody.sock"));
  notify_supervisor("READY=1");
  { const Supervisor gone(folder.file("nobody.sock")); }
  notify_supervisor("READY=1");
}

TEST(NotifySupervisor, ASupervisorThatDoesNotReadIsNotWaitedFor) {
  const TempFolder folder;
  const Supervisor supervisor(folder.file("notify.sock"));
  const Variable socket("NOTIFY_SOCKET", folder.file("notify.sock"));
  // The kernel holds at most some hundred datagrams (net.unix.max_dgram_qlen) and some hundred KiB.
  const std::string state = "STATUS=" + std::string(2000, 's');
  EXPECT_TRUE(ends_by_itself(
      [&state] {
        for (int i = 0; i < 5000; ++i) notify_supervisor(state);
      },
      [&supervisor] {
        while (supervisor.next()) {
        }
      }));
  EXPECT_EQ(supervisor.next(), state) << "what fitted was sent";
}

TEST(Watchdog, IsWantedAsOftenAsTheSupervisorSays) {
  const Variable microseconds("WATCHDOG_USEC", "2500000");
  {
    const Variable pid("WATCHDOG_PID", std::nullopt);
    EXPECT_DOUBLE_EQ(watchdog_seconds(), 2.5);
  }
  const Variable pid("WATCHDOG_PID", std::to_string(::getpid()));
  EXPECT_DOUBLE_EQ(watchdog_seconds(), 2.5);
}

TEST(Watchdog, OfAnotherProcessIsNone) {
  const Variable microseconds("WATCHDOG_USEC", "2500000");
  for (const std::string& other : {std::to_string(::getppid()), std::string("1234567890"), std::string()}) {
    const Variable pid("WATCHDOG_PID", other);
    EXPECT_EQ(watchdog_seconds(), 0) << other;
  }
}

TEST(Watchdog, IsNoneUnlessTheSupervisorWantsIt) {
  const Variable pid("WATCHDOG_PID", std::nullopt);
  for (const std::optional<std::string>& value :
       {std::optional<std::string>(), std::optional<std::string>("0"), std::optional<std::string>("soon")}) {
    const Variable microseconds("WATCHDOG_USEC", value);
    EXPECT_EQ(watchdog_seconds(), 0) << value.value_or("not set");
  }
}

std::int64_t monotonic_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
}

/// systemd takes the next READY=1 for the end of the reload only if it knows that the reload began after its signal.
TEST(Reloading, TellsTheTimeAtWhichItBegan) {
  const std::int64_t before = monotonic_us();
  const std::string state = reloading_state();
  const std::int64_t after = monotonic_us();
  const std::string start = "RELOADING=1\nMONOTONIC_USEC=";
  ASSERT_THAT(state, StartsWith(start));
  const std::string digits = state.substr(start.size());
  ASSERT_FALSE(digits.empty());
  EXPECT_EQ(digits.find_first_not_of("0123456789"), std::string::npos) << digits;
  EXPECT_GE(std::stoll(digits), before);
  EXPECT_LE(std::stoll(digits), after);
}

/// Replaces standard error with a pipe while the object lives.
class StandardError {
 public:
  StandardError() : saved_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    read_ = ends[0];
    ::fcntl(read_, F_SETFL, O_NONBLOCK);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
  }
  ~StandardError() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    ::close(read_);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

  /// Everything that has been written but not yet read.
  [[nodiscard]] std::string take() const {
    std::string text;
    std::array<char, 4096> bytes{};
    for (ssize_t got = 0; (got = ::read(read_, bytes.data(), bytes.size())) > 0;)
      text.append(bytes.data(), static_cast<std::size_t>(got));
    return text;
  }

  /// Writes until nothing more fits; returns the number of bytes.
  [[nodiscard]] static std::size_t fill() {
    const int flags = ::fcntl(STDERR_FILENO, F_GETFL);
    ::fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    std::size_t bytes = 0;
    const std::string piece(4096, 'f');
    for (std::size_t size = piece.size(); size > 0;) {
      const ssize_t written = ::write(STDERR_FILENO, piece.data(), size);
      if (written > 0)
        bytes += static_cast<std::size_t>(written);
      else
        size /= 2;
    }
    ::fcntl(STDERR_FILENO, F_SETFL, flags);
    return bytes;
  }

 private:
  int saved_;
  int read_ = -1;
};

class LogTest : public testing::Test {
  const Variable no_journal_{"JOURNAL_STREAM", std::nullopt};  // before the first log()
};

TEST_F(LogTest, EachLineNamesTheProgram) {
  const StandardError error;
  log(Level::warning, "no GPU to watch");
  EXPECT_EQ(error.take(), "vramtrack: no GPU to watch\n");
  log(Level::info, "first\n\nthird\n");
  EXPECT_EQ(error.take(), "vramtrack: first\nvramtrack: \nvramtrack: third\n");
  log(Level::notice, "");
  EXPECT_EQ(error.take(), "");
}

TEST_F(LogTest, APipeThatNobodyReadsIsNotWaitedFor) {
  const StandardError error;
  const std::size_t filled = StandardError::fill();
  ASSERT_GT(filled, 0U);
  const auto read_all = [&error] { (void)error.take(); };
  EXPECT_TRUE(ends_by_itself([] { log(Level::error, "the store cannot be written"); }, read_all));
  EXPECT_EQ(error.take().size(), filled) << "what did not fit was left out";
  log(Level::error, "the store can be written again");
  EXPECT_EQ(error.take(), "vramtrack: the store can be written again\n");
}

TEST_F(LogTest, OfATextThatDoesNotFitTheBeginningIsWritten) {
  const StandardError error;
  const std::size_t room = StandardError::fill();
  ASSERT_EQ(error.take().size(), room);
  const std::string text(2 * room, 't');
  const auto read_all = [&error] { (void)error.take(); };
  ASSERT_TRUE(ends_by_itself([&text] { log(Level::error, text); }, read_all));
  const std::string written = error.take();
  EXPECT_GE(written.size(), room / 2);
  EXPECT_EQ(written, ("vramtrack: " + text).substr(0, written.size()));
}

/// The check for a journal as the reader is made once per process, so this test needs a process of its own.
TEST(LogDeathTest, TheJournalGetsPriorities) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto to_journal = [] {
    struct stat info {};
    ::fstat(STDERR_FILENO, &info);
    ::setenv("JOURNAL_STREAM", fmt::format("{}:{}", info.st_dev, info.st_ino).c_str(), 1);
    log(Level::warning, "one\ntwo");
    log(Level::error, "three");
    std::_Exit(0);
  };
  EXPECT_EXIT(to_journal(), testing::ExitedWithCode(0), HasSubstr("<4>one\n<4>two\n<3>three\n"));
}

TEST(LogDeathTest, AnotherFileThanTheJournalGetsNone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto beside_journal = [] {
    struct stat info {};
    ::fstat(STDERR_FILENO, &info);
    ::setenv("JOURNAL_STREAM", fmt::format("{}:{}", info.st_dev, info.st_ino + 1).c_str(), 1);
    log(Level::warning, "one");
    std::_Exit(0);
  };
  EXPECT_EXIT(beside_journal(), testing::ExitedWithCode(0), HasSubstr("vramtrack: one\n"));
}

}  // namespace
}  // namespace vramtrack::agent

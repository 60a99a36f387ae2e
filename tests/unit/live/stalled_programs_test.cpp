// Real programs that hold memory on fake GPUs and make no progress, through the live loop: which of them count as
// stalled? Time is simulated: 30 s pass at each tick.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <vector>

#include "../manual_clock.hpp"
#include "../temp_folder.hpp"
#include "host/process.hpp"
#include "live/loop.hpp"
#include "paths.hpp"

namespace vramtrack {

extern const SourceInfo nvml_source;

namespace {

using ::testing::HasSubstr;

constexpr double kTick_s = 30;

/// A child in its own process group, as started by a shell. The destructor ends it.
class Program {
 public:
  /// `body` runs in the child and never returns; it closes `ready`, or loses it by exec, when it has reached its state.
  explicit Program(const std::function<void(int ready)>& body) {
    std::array<int, 2> pipe_ends{};
    if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setpgid(0, 0);
      ::close(pipe_ends[0]);
      body(pipe_ends[1]);
      ::_exit(1);
    }
    ::close(pipe_ends[1]);
    // Reads the child's output until nobody has the other end.
    char byte = 0;
    while (::read(pipe_ends[0], &byte, 1) == 1) said_ += byte;
    ::close(pipe_ends[0]);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  [[nodiscard]] const std::string& said() const { return said_; }

 private:
  pid_t pid_ = -1;
  std::string said_;
};

/// Sleeps forever, under the command line of another program.
std::function<void(int)> called(const std::string& command) {
  return [command](int) { ::execl("/bin/sleep", command.c_str(), "1000000", nullptr); };
}

void waits_for_ever(int ready) {
  ::close(ready);
  for (;;) ::pause();
}

void waits_in_futex(int ready) {
  ::close(ready);
  int word = 0;
  for (;;) ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}

void spins(int ready) {
  ::close(ready);
  volatile unsigned i = 0;
  for (;;) i = i + 1;
}

/// Serves the first client until it disconnects, and writes its port.
void serves(int ready) {
  const int listens = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(listens, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(listens, 8) != 0) ::_exit(1);
  ::getsockname(listens, reinterpret_cast<sockaddr*>(&address), &length);
  const std::string port = std::to_string(ntohs(address.sin_port));
  if (::write(ready, port.data(), port.size()) < 0) ::_exit(1);
  ::close(ready);
  const int client = ::accept(listens, nullptr, nullptr);
  std::array<char, 16> request{};
  while (::read(client, request.data(), request.size()) > 0) continue;
  for (;;) ::pause();
}

/// A connection to a server on this machine.
class Client {
 public:
  explicit Client(const Program& server) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(server.said())));
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::close(fd_); }

 private:
  int fd_;
};

/// A machine with fake GPUs, one per program.
class Machine {
 public:
  explicit Machine(const std::vector<std::uint32_t>& pids, double minutes = 30, double tick_s = kTick_s) {
    const std::string scenario = folder_.path() + "/scenario";
    std::ofstream out(scenario);
    for (std::size_t i = 0; i < pids.size(); ++i)
      out << "gpu " << i << " uuid=GPU-" << i << " name=\"Fake\" pci=00000000:" << 10 + i
          << ":00.0 total=80G used=600M util=0 memutil=0\nprocess gpu=" << i << " pid=" << pids[i] << " used=2G\n";
    out.close();
    ::setenv("VRAMTRACK_FAKE_NVML", scenario.c_str(), 1);
    config_.sources.nvml_library = build_dir() + "/fake_nvml/current/libnvidia-ml.so.1";
    config_.stall.minutes = minutes;
    config_.watch.interval_seconds = tick_s;
    LoopInput input;
    input.catalog = std::make_unique<Catalog>();
    auto source = nvml_source.make(config_.sources, *input.catalog);
    EXPECT_TRUE(source) << source.error().message;
    if (source) input.sources.push_back(LiveSource{.name = "nvml", .source = std::move(*source)});
    loop_ = std::make_unique<Loop>(config_, std::move(input), manual_clock(time_));
    Listener listener;
    listener.alert = [this](const AlertNotice& told) { alerts.push_back(told.alert); };
    loop_->pipeline().listen(std::move(listener));
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() { ::unsetenv("VRAMTRACK_FAKE_NVML"); }

  void tick() {
    loop_->clock().sleep_until(loop_->next());
    loop_->tick();
  }
  void pass(double minutes) {
    for (double s = 0; s <= minutes * 60; s += kTick_s) tick();
  }
  std::optional<Stall> stall_of(const Program& program) { return stall_of(program.pid()); }
  std::optional<Stall> stall_of(std::uint32_t pid) {
    const auto view = loop_->pipeline().view();
    for (const SeriesView& s : view->series)
      if (s.key.pid == pid) return s.stall;
    ADD_FAILURE() << "pid " << pid << " is not in the view";
    return std::nullopt;
  }
  [[nodiscard]] const OwnCost& cost() const { return loop_->cost(); }

  std::vector<Alert> alerts;

 private:
  TempFolder folder_;
  Config config_;
  std::shared_ptr<ManualTime> time_ = std::make_shared<ManualTime>();
  std::unique_ptr<Loop> loop_;
};

void expect(const std::optional<Stall>& stall, StallJudgement judgement, StallCause cause, const char* name) {
  ASSERT_TRUE(stall) << name;
  std::string evidence;
  for (const std::string& line : stall->evidence) evidence += "\n  " + line;
  EXPECT_EQ(to_string(stall->judgement), to_string(judgement)) << name << evidence;
  EXPECT_EQ(to_string(stall->cause), to_string(cause)) << name << evidence;
}

TEST(StalledPrograms, HungWorkersAreFoundAndWhatRestsIsNot) {
  const Program sleeper(waits_for_ever);
  const Program locked(waits_in_futex);
  const Program stopped(waits_for_ever);
  const Program server(serves);
  const Program asked(serves);
  const Program deaf(serves);
  const Program kernel(called("python -m ipykernel_launcher -f /run/user/1000/jupyter/kernel-1.json"));
  const Program model(called("/usr/lib/ollama/runners/cuda_v12/ollama_llama_server --port 43211"));
  const Client client(asked);
  const Client first(deaf);
  const Client second(deaf);  // it is not accepted
  ASSERT_EQ(::kill(static_cast<pid_t>(stopped.pid()), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(static_cast<pid_t>(stopped.pid()), &status, WUNTRACED), static_cast<pid_t>(stopped.pid()));
  Machine machine(
      {sleeper.pid(), locked.pid(), stopped.pid(), server.pid(), asked.pid(), deaf.pid(), kernel.pid(), model.pid()});
  machine.pass(29);
  for (const Program* p : {&sleeper, &locked, &stopped, &server, &asked, &deaf, &kernel, &model})
    EXPECT_FALSE(machine.stall_of(*p));
  machine.pass(3);
  expect(machine.stall_of(sleeper), StallJudgement::stalled, StallCause::waits, "a sleeper");
  expect(machine.stall_of(locked), StallJudgement::stalled, StallCause::waits, "one in a futex");
  expect(machine.stall_of(stopped), StallJudgement::stalled, StallCause::stopped, "a stopped one");
  expect(machine.stall_of(deaf), StallJudgement::stalled, StallCause::unread_requests, "a server that hangs");
  expect(machine.stall_of(server), StallJudgement::idle, StallCause::unknown, "a server without clients");
  expect(machine.stall_of(asked), StallJudgement::idle, StallCause::unknown, "a server with a client");
  expect(machine.stall_of(kernel), StallJudgement::idle, StallCause::unknown, "a notebook");
  expect(machine.stall_of(model), StallJudgement::idle, StallCause::unknown, "a loaded model");
  EXPECT_EQ(machine.alerts.size(), 4U);
  ASSERT_FALSE(machine.stall_of(asked)->evidence.empty());
  EXPECT_THAT(machine.stall_of(asked)->evidence[0], HasSubstr("1 client is connected"));
  EXPECT_GT(machine.cost().looks, 60U);
}

TEST(StalledPrograms, AHelperWhoseParentDiedIsFound) {
  // The trainer writes the helper's pid.
  auto trainer = std::make_unique<Program>([](int ready) {
    const pid_t helper = ::fork();
    if (helper == 0)
      called("python -c from multiprocessing.spawn import spawn_main; spawn_main() --multiprocessing-fork")(ready);
    const std::string pid = std::to_string(helper);
    if (::write(ready, pid.data(), pid.size()) < 0) ::_exit(1);
    ::close(ready);
    for (;;) ::pause();
  });
  const auto helper = static_cast<std::uint32_t>(std::stoul(trainer->said()));
  Machine machine({helper});
  machine.tick();
  machine.tick();
  trainer.reset();
  machine.pass(32);
  const auto stall = machine.stall_of(helper);
  ::kill(static_cast<pid_t>(helper), SIGKILL);
  expect(stall, StallJudgement::stalled, StallCause::orphaned, "a helper without its parent");
  EXPECT_GT(stall->confidence, 0.9);
}

// As far as can be seen from outside, a busy core is progress.
TEST(StalledPrograms, ABusyLoopAloneIsNotStalled) {
  const Program program(spins);
  constexpr double kShortTick_s = 0.5;
  Machine machine({program.pid()}, 0.1, kShortTick_s);
  std::string scratch;
  double cpu_s = 0;
  for (int i = 0; i < 24; ++i) {
    // A busy core's time per tick is more than a tick takes here; a tenth of it is above the limit for idle processes.
    const double until_s = cpu_s + kShortTick_s / 10;
    while (cpu_s < until_s) cpu_s = process_alive("/proc", program.pid(), scratch)->cpu_s;
    machine.tick();
  }
  EXPECT_FALSE(machine.stall_of(program));
  EXPECT_TRUE(machine.alerts.empty());
}

}  // namespace
}  // namespace vramtrack

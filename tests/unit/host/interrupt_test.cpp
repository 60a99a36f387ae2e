#include "host/interrupt.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "patience.hpp"

namespace vramtrack {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    for (const int end : ends) ::close(end);
  }
  int ends[2] = {-1, -1};
};

TEST(Interrupt, WaitsForADescriptor) {
  const Interrupt interrupt;
  const Pipe pipe;
  EXPECT_FALSE(Interrupt::wait_ready(pipe.ends[0], POLLIN, Clock::now() + 1ms)) << "nothing is there";
  EXPECT_FALSE(Interrupt::wait_ready(pipe.ends[0], POLLIN, Clock::now() - 1s));
  ASSERT_EQ(::write(pipe.ends[1], "x", 1), 1);
  EXPECT_TRUE(Interrupt::wait_ready(pipe.ends[0], POLLIN, Clock::now() + patience(10s)));
}

TEST(Interrupt, AWaitEndsWhicheverThreadGetsTheSignal) {
  const Interrupt interrupt;
  const Pipe pipe;
  const auto begun = Clock::now();
  std::thread other([] { ::raise(SIGTERM); });  // raise() signals the thread that calls it
  EXPECT_FALSE(Interrupt::wait_ready(pipe.ends[0], POLLIN, Clock::now() + 10min));
  EXPECT_TRUE(Interrupt::requested());
  EXPECT_FALSE(Interrupt::sleep_until(Clock::now() + 10min));
  EXPECT_LT(Clock::now() - begun, patience(5s));
  other.join();
}

TEST(Interrupt, OneWithinAnotherTakesOverItsRequest) {
  const Interrupt outer;
  ::raise(SIGINT);
  {
    const Interrupt inner;
    EXPECT_TRUE(Interrupt::requested()) << "it came before";
    EXPECT_FALSE(Interrupt::sleep_until(Clock::now() + 10min));
  }
  EXPECT_FALSE(Interrupt::requested()) << "it was answered";
  EXPECT_TRUE(Interrupt::sleep_until(Clock::now() + 1ms)) << "the pipe of the outer one is whole";
}

}  // namespace
}  // namespace vramtrack

// Waiting: the ledgers that end it, and the process that a pid refers to.
#include "live/wait.hpp"

#include <gmock/gmock.h>

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kGi = std::uint64_t{1} << 30U;

struct Machine {
  Ledger ledger;
  std::map<std::uint32_t, std::uint64_t> running;

  Machine() { ledger.devices.push_back(gpu(0, 10 * kGi)); }
  static DeviceLedger gpu(int index, std::uint64_t used) {
    DeviceLedger one;
    one.device.id = "GPU-" + std::to_string(index);
    one.device.index = index;
    one.device.capacity_bytes = 24 * kGi;
    one.used_bytes = used;
    return one;
  }
  void add(std::uint32_t pid, std::uint64_t start, std::uint64_t bytes, const std::string& user = "ada") {
    Holder holder;
    holder.info.pid = pid;
    holder.info.start_ticks = start;
    holder.info.user = user;
    holder.info.command = "python train.py";
    holder.info.container = "0123456789abcdef";
    holder.why = "it runs";
    ledger.devices.front().lines.push_back({holder, bytes, {}});
    running[pid] = start;
  }
  [[nodiscard]] StartOf starts() const {
    return [this](std::uint32_t pid) -> std::optional<std::uint64_t> {
      const auto at = running.find(pid);
      return at == running.end() ? std::nullopt : std::optional(at->second);
    };
  }
};

TEST(Waiting, UntilSoMuchIsFree) {
  Machine m;
  m.ledger.devices.front().reserved_bytes = kGi;
  m.add(10, 5, 9 * kGi);
  WaitFor what;
  what.free_bytes = 14 * kGi;
  Waiting waiting(what, m.starts());
  auto look = waiting.look(m.ledger);
  ASSERT_TRUE(look);
  // The driver's own memory is in use in addition to the 10 GiB.
  EXPECT_THAT(look->unmet, ElementsAre("GPU 0: 13.0 GiB free, 14.0 GiB wanted"));
  EXPECT_THAT(wait_text(*look), HasSubstr("pid 10 python train.py (ada) holds 9.0 GiB of GPU 0: alive; it runs"));
  m.ledger.devices.front().used_bytes = 9 * kGi;
  EXPECT_TRUE(waiting.look(m.ledger)->is_met());
}

TEST(Waiting, ForWhatCannotHappenIsAnError) {
  Machine m;
  WaitFor what;
  what.free_bytes = 30 * kGi;
  EXPECT_THAT(Waiting(what, m.starts()).look(m.ledger).error().message, HasSubstr("will never be free"));
  what.free_bytes = kGi;
  m.ledger.devices.front().used_bytes.reset();
  EXPECT_THAT(Waiting(what, m.starts()).look(m.ledger).error().message,
              HasSubstr("until no process holds any of it instead"));
  what = {};
  what.is_empty = true;
  what.gpus = {"7"};
  EXPECT_THAT(Waiting(what, m.starts()).look(m.ledger).error().message, HasSubstr("there is no GPU 7 here"));
}

TEST(Waiting, AGpuThatDoesNotAnswerLaterIsNotFree) {
  Machine m;
  m.add(10, 5, kGi);
  WaitFor what;
  what.is_empty = true;
  what.gpus = {"0"};
  Waiting waiting(what, m.starts());
  EXPECT_FALSE(waiting.look(m.ledger)->is_met());
  const auto look = waiting.look(Ledger{});
  ASSERT_TRUE(look);
  EXPECT_THAT(look->unmet, ElementsAre("GPU 0 does not answer"));
}

TEST(Waiting, EmptyMeansThatNobodyHoldsIt) {
  Machine m;
  WaitFor what;
  what.is_empty = true;
  m.add(10, 5, kGi);
  m.ledger.devices.front().lines.front().holder.state = HolderState::service;
  EXPECT_TRUE(Waiting(what, m.starts()).look(m.ledger)->is_met()) << "a display server stays";
  m.ledger.devices.front().unattributed_bytes = 3 * kGi;
  EXPECT_THAT(Waiting(what, m.starts()).look(m.ledger)->unmet,
              ElementsAre("GPU 0: 3.0 GiB in use that no process holds"));
  // A process that has the GPU open may be the holder.
  Holder open = m.ledger.devices.front().lines.front().holder;
  open.info.pid = 11;
  open.state = HolderState::orphaned;
  open.files = {"/dev/nvidia0"};
  m.ledger.devices.front().not_listed.push_back(open);
  EXPECT_THAT(wait_text(*Waiting(what, m.starts()).look(m.ledger)),
              HasSubstr("pid 11 python train.py (ada) has GPU 0 open: orphaned"));
}

TEST(Waiting, OnlyForThoseThatAreNamed) {
  Machine m;
  m.add(10, 5, kGi, "ada");
  const auto is_met = [&m](const WaitFor& what) { return Waiting(what, m.starts()).look(m.ledger)->is_met(); };
  WaitFor what;
  what.is_empty = true;
  what.users = {"bob"};
  EXPECT_TRUE(is_met(what));
  what.users = {"bob", "ada"};
  EXPECT_FALSE(is_met(what));
  what = {};
  what.is_empty = true;
  what.containers = {"01234567"};
  EXPECT_FALSE(is_met(what));
  what.containers = {"ff"};
  EXPECT_TRUE(is_met(what));
  what = {};
  what.is_empty = true;
  what.pids = {99};
  EXPECT_TRUE(is_met(what)) << "there is no such process";
}

TEST(Waiting, TheStartDecidesWhichProcessAPidMeans) {
  Machine m;
  m.add(10, 5, kGi);
  WaitFor what;
  what.is_gone = true;
  what.pids = {10};
  Waiting waiting(what, m.starts());
  EXPECT_THAT(waiting.look(m.ledger)->unmet, ElementsAre("pid 10 has not ended"));
  // It is a zombie that the driver still lists; then another process gets its pid and holds memory.
  m.running.erase(10);
  EXPECT_THAT(waiting.look(m.ledger)->unmet, ElementsAre("pid 10 has ended, but the driver still lists it on GPU 0"));
  m.ledger.devices.front().lines.clear();
  m.add(10, 6, 2 * kGi);
  EXPECT_TRUE(waiting.look(m.ledger)->is_met());
}

TEST(Waiting, AProcessWithoutMemoryIsWaitedForUntilItEnds) {
  Machine m;
  m.running[10] = 5;
  WaitFor what;
  what.is_gone = true;
  what.pids = {10};
  Waiting waiting(what, m.starts());
  EXPECT_THAT(wait_text(*waiting.look(m.ledger)), HasSubstr("pid 10: alive; it runs, and holds no GPU memory"));
  m.running.clear();
  EXPECT_TRUE(waiting.look(m.ledger)->is_met());
}

TEST(Waiting, AnInstanceIsNamedByItsUuidAndAGpuHasItsProcesses) {
  Machine m;
  m.add(10, 5, kGi);
  DeviceLedger instance = m.ledger.devices.front();
  instance.device.id = "MIG-0";
  instance.device.parent_id = "GPU-0";
  m.ledger.devices.push_back(instance);
  WaitFor what;
  what.is_empty = true;
  what.gpus = {"0"};
  auto look = Waiting(what, m.starts()).look(m.ledger);
  EXPECT_EQ(look->devices.size(), 1U);
  what.gpus = {"MIG-0"};
  look = Waiting(what, m.starts()).look(m.ledger);
  EXPECT_THAT(look->unmet, ElementsAre("MIG instance 0: 1 process uses it"));
}

TEST(Waiting, SaysInWordsWhatIsWaitedFor) {
  WaitFor what;
  what.free_bytes = 20 * kGi;
  what.is_gone = true;
  what.gpus = {"0", "1"};
  what.pids = {10, 11};
  EXPECT_EQ(wait_words(what), "20.0 GiB free on each of GPUs 0 and 1 and pids 10 and 11 to end");
}

TEST(Waiting, NothingIsSaidAnewWhileAFigureMovesALittle) {
  Machine m;
  m.add(10, 5, kGi);
  WaitFor what;
  what.is_empty = true;
  Waiting waiting(what, m.starts());
  const std::string before = wait_signature(*waiting.look(m.ledger));
  m.ledger.devices.front().used_bytes = 10 * kGi - 1000;
  EXPECT_EQ(wait_signature(*waiting.look(m.ledger)), before);
  m.ledger.devices.front().lines.front().holder.state = HolderState::zombie;
  EXPECT_NE(wait_signature(*waiting.look(m.ledger)), before);
}

}  // namespace
}  // namespace vramtrack

// One program's life, on the fake CUDA driver: real memory of its device, real signals, real work as the kernel counts
// it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <random>
#include <vector>

#include "board.hpp"

extern "C" {
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes);
int cuMemFree_v2(unsigned long long address);
}

namespace bench {
namespace {

constexpr std::uint64_t kBlock = 4 << 20;
constexpr useconds_t kStep_us = 20'000;
volatile std::sig_atomic_t asked = 0;

class Memory {
 public:
  explicit Memory(std::uint32_t device) {
    void* context = nullptr;
    is_there_ = cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, static_cast<int>(device)) == 0 &&
                cuCtxSetCurrent(context) == 0;
  }
  /// false: the device is full.
  bool hold(double bytes) {
    const auto blocks = static_cast<std::size_t>(std::max(0.0, bytes) / static_cast<double>(kBlock));
    for (; blocks_.size() > blocks; blocks_.pop_back()) cuMemFree_v2(blocks_.back());
    while (blocks_.size() < blocks) {
      unsigned long long address = 0;
      if (!is_there_ || cuMemAlloc_v2(&address, kBlock) != 0) return false;
      blocks_.push_back(address);
    }
    return true;
  }

 private:
  bool is_there_ = false;
  std::vector<unsigned long long> blocks_;
};

/// What it holds at `t_s`, before its trouble begins.
double wanted_bytes(const Slot& slot, double t_s, std::mt19937& random, double* batch) {
  const auto base = static_cast<double>(slot.base_bytes);
  switch (slot.kind) {
    case Kind::sawtooth:
    case Kind::hangs:
    case Kind::stopped:
    case Kind::orphaned:
      return base * (0.7 + 0.3 * std::fmod(t_s / 90, 1.0));
    case Kind::warm_up:
      return base * (1 - std::exp(-t_s / 240));
    case Kind::batches:
      if (random() % 8 == 0) *batch = std::uniform_real_distribution<>(0.6, 1)(random);
      return base * *batch;
    case Kind::leaks:
    case Kind::stubborn:
      return base + slot.growth_bytes_per_s * std::max(0.0, t_s - slot.onset_s);
    default:
      return base;
  }
}

void wait_for_ever() {
  for (;;) ::pause();
}

/// A port that nobody calls.
void serve_until(double seconds) {
  const int port = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)::bind(port, reinterpret_cast<sockaddr*>(&address), sizeof address);
  (void)::listen(port, 8);
  ::usleep(static_cast<useconds_t>(std::max(0.0, seconds) * 1e6));
  ::close(port);
}

/// The trouble of a life that hangs begins; does not return. The parent of an orphaned one has ended.
[[noreturn]] void hang(Slot& slot) {
  slot.trouble_us = now_us();
  if (slot.kind == Kind::stopped) ::raise(SIGSTOP);
  wait_for_ever();
  ::_exit(0);
}

}  // namespace

std::int64_t now_us() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

Slot* map_board(const char* path, std::size_t slots) {
  const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(slots * sizeof(Slot))) != 0) return nullptr;
  void* at = ::mmap(nullptr, slots * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return at == MAP_FAILED ? nullptr : static_cast<Slot*>(at);
}

int live(Slot& slot) {
  if (slot.kind == Kind::orphaned) {
    // A trainer and its worker: the worker holds the memory, and the trainer ends when the trouble begins.
    (void)::setsid();
    if (const pid_t worker = ::fork(); worker != 0) {
      ::usleep(static_cast<useconds_t>(slot.onset_s / slot.speed * 1e6));
      return 0;
    }
    ::prctl(PR_SET_NAME, "pt_data_worker");
  }
  std::signal(SIGUSR1, [](int) { asked = 1; });
  if (slot.kind == Kind::stubborn) std::signal(SIGTERM, SIG_IGN);
  slot.pid = static_cast<std::uint32_t>(::getpid());
  Memory memory(slot.device);
  std::mt19937 random(slot.seed);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const std::vector<char> work(4096);
  slot.began_us = now_us();
  double batch = 1;
  for (;;) {
    const double t_s = static_cast<double>(now_us() - slot.began_us) * 1e-6 * slot.speed;
    if (t_s >= slot.length_s) break;
    if (!memory.hold(wanted_bytes(slot, t_s, random, &batch))) {
      slot.full_us = now_us();
      break;
    }
    if (is_leak(slot.kind) && t_s >= slot.onset_s && slot.trouble_us == 0) slot.trouble_us = now_us();
    if (is_zombie(slot.kind) && t_s >= slot.onset_s) hang(slot);
    if (slot.kind == Kind::server && t_s >= slot.onset_s) {
      serve_until((slot.length_s - t_s) / slot.speed);
      break;
    }
    if (asked != 0 && slot.asked_us == 0) slot.asked_us = now_us();
    const bool saves = slot.asked_us != 0 && slot.saved_us == 0;
    if (saves && static_cast<double>(now_us() - slot.asked_us) * 1e-6 * slot.speed >= slot.checkpoint_s)
      slot.saved_us = now_us();
    (void)!::write(nowhere, work.data(), work.size());
    ::usleep(kStep_us);
  }
  slot.ended_us = now_us();
  return slot.full_us == 0 ? 0 : 1;
}

}  // namespace bench

#include "probe/sampling.hpp"

#include <algorithm>
#include <atomic>

namespace vramtrack::probe {
namespace {

constexpr std::uint64_t kWindowUs = 62'500;  ///< how often the interval may change

std::atomic<std::uint64_t> interval_bytes{0};
std::atomic<std::uint64_t> window_begin_us{0};
std::atomic<std::uint64_t> window_recorded{0};
std::atomic<std::uint64_t> window_bytes{0};

/// Changed only by the thread that closes a window: one at a time, a window apart.
SamplingRate rate;

struct Phase {
  std::int64_t left_bytes = 0;
  std::uint64_t random = 0;
  std::uint32_t passed_over = 0;
};
__attribute__((tls_model("initial-exec"))) thread_local Phase phase;

/// Xorshift (Marsaglia 2003): good enough to keep the phase from resonating with the program's loop.
std::uint64_t draw() {
  std::uint64_t x = phase.random;
  if (x == 0) x = reinterpret_cast<std::uintptr_t>(&phase) | 1U;
  x ^= x << 13U;
  x ^= x >> 7U;
  x ^= x << 17U;
  return phase.random = x;
}

void change_window(Ring& ring, std::uint64_t now_us) {
  std::uint64_t begin = window_begin_us.load(std::memory_order_relaxed);
  if (now_us - begin < kWindowUs || !window_begin_us.compare_exchange_strong(begin, now_us)) return;
  const std::uint64_t recorded = window_recorded.exchange(0, std::memory_order_relaxed);
  const std::uint64_t bytes = window_bytes.exchange(0, std::memory_order_relaxed);
  const std::uint64_t interval = rate.interval_bytes;
  rate.after(recorded, bytes, now_us - begin);
  const std::uint64_t next = rate.interval_bytes;
  if (next == interval) return;
  interval_bytes.store(next, std::memory_order_relaxed);
  ring.put(head_of(Record::sampling, Call::none, 0, 0, 0), when(now_us, 0), 0, next);
}

}  // namespace

void SamplingRate::after(std::uint64_t recorded, std::uint64_t bytes, std::uint64_t elapsed_us) {
  const std::uint64_t most = std::max<std::uint64_t>(1, kMostPerSecond * elapsed_us / 1'000'000);
  saved = std::min(kMostSaved, saved + static_cast<std::int64_t>(most) - static_cast<std::int64_t>(recorded));
  if (saved < 0) {
    saved = 0;
    if (recorded > most) interval_bytes = std::max<std::uint64_t>({interval_bytes * 2, bytes / most, 1});
  } else if (interval_bytes != 0 && recorded < most / 3) {
    // Halving the interval doubles the number of records, so it requires room for that and some more.
    interval_bytes = interval_bytes > 512 ? interval_bytes / 2 : 0;
  }
}

void forget_sampling() {
  for (auto* value : {&interval_bytes, &window_begin_us, &window_recorded, &window_bytes})
    value->store(0, std::memory_order_relaxed);
  rate = {};
}

bool is_sampled(Ring& ring, std::uint64_t bytes, std::uint64_t& now_us) {
  const std::uint64_t interval = interval_bytes.load(std::memory_order_relaxed);
  bool is_taken = interval == 0 || bytes >= interval;
  if (!is_taken) {
    phase.left_bytes -= static_cast<std::int64_t>(bytes);
    if (phase.left_bytes < 0) {
      is_taken = true;
      // Add half to one and a half intervals, so that the mean is the interval.
      phase.left_bytes += static_cast<std::int64_t>(interval / 2 + draw() % interval);
    }
  }
  window_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (is_taken) window_recorded.fetch_add(1, std::memory_order_relaxed);
  // Reading the clock takes as long as everything else, and most calls are skipped in busy programs.
  if (is_taken || ++phase.passed_over % 16 == 0) {
    now_us = ring.now_us();
    change_window(ring, now_us);
  }
  return is_taken;
}

}  // namespace vramtrack::probe

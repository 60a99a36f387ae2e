#include "probe/totals.hpp"

#include <array>
#include <atomic>
#include <ctime>

#include "probe/recorder.hpp"

namespace vramtrack::probe {
namespace {

constexpr std::uint64_t kEveryNs = 10'000'000;

struct LastTotals {
  std::atomic<std::uint64_t> torch_ns{0};
  std::atomic<std::uint64_t> pool_ns{0};
  std::atomic<std::uint64_t> reserved_bytes{0};
};
std::array<LastTotals, kMostDevices> last_totals;

/// Accurate to some milliseconds, at a fifth of the exact clock's cost.
std::uint64_t coarse_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

bool is_device(int device) {
  return device >= 0 && static_cast<std::size_t>(device) < kMostDevices;
}

}  // namespace

void record_torch_totals(int device, std::uint64_t allocated_bytes, std::uint64_t reserved_bytes) {
  if (!is_device(device)) return;
  LastTotals& last = last_totals[static_cast<std::size_t>(device)];
  const std::uint64_t now = coarse_ns();
  const bool is_due = now - last.torch_ns.load(std::memory_order_relaxed) >= kEveryNs;
  if (!is_due && last.reserved_bytes.load(std::memory_order_relaxed) == reserved_bytes) return;
  last.torch_ns.store(now, std::memory_order_relaxed);
  last.reserved_bytes.store(reserved_bytes, std::memory_order_relaxed);
  record_totals(Call::torch_block, device, allocated_bytes, reserved_bytes);
}

bool pool_totals_are_due(int device, bool at_once) {
  if (!is_device(device)) return false;
  LastTotals& last = last_totals[static_cast<std::size_t>(device)];
  if (last.torch_ns.load(std::memory_order_relaxed) != 0) return false;
  const std::uint64_t now = coarse_ns();
  if (!at_once && now - last.pool_ns.load(std::memory_order_relaxed) < kEveryNs) return false;
  last.pool_ns.store(now, std::memory_order_relaxed);
  return true;
}

}  // namespace vramtrack::probe

#include "detect/window.hpp"

#include <algorithm>

namespace vramtrack {
namespace {

/// A rise of this share of the net is a jump: what comes after it is a separate window.
constexpr double kJumpShare = 0.3;
/// Buckets count as flat up to this share of the rise above the base.
constexpr double kFlatShare = 0.02;

double rise_at(const Floors& floors, std::size_t i) {
  return floors.bytes[i] - floors.bytes[i - 1];
}

}  // namespace

Floors::Floors(const Scales& scales, std::size_t k) {
  const Level& level = scales.level(k);
  const double width_s = Scales::width_s(k);
  const std::int32_t begins = level.regimes().begins();
  level.for_each([&](const Bucket& bucket) {
    bytes[size] = static_cast<double>(bucket.floor_bytes);
    time_s[size] = static_cast<double>(bucket.slot) * width_s;
    regime += bucket.slot < begins ? 1U : 0U;
    ++size;
  });
}

Starts starts_of(const Level& level, const Floors& floors) {
  Starts starts;
  const std::size_t last = level.size() - 1;
  // The bets in one pass, since this runs for each bucket that closes; by name, so that they stay in registers.
  static_assert(kBets == 3);
  Start a{last, 0, 0};
  Start b{last, 1, 0};
  Start c{last, 2, 0};
  double sum_a = 0;
  double sum_b = 0;
  double sum_c = 0;
  std::size_t at = level.size();
  level.for_each_back([&](const Bucket& bucket) {
    if (--at == 0) return;  // the base of all
    sum_a += static_cast<double>(bucket.gain_nats[0]);
    sum_b += static_cast<double>(bucket.gain_nats[1]);
    sum_c += static_cast<double>(bucket.gain_nats[2]);
    if (sum_a > a.nats) a = {at - 1, 0, sum_a};
    if (sum_b > b.nats) b = {at - 1, 1, sum_b};
    if (sum_c > c.nats) c = {at - 1, 2, sum_c};
  });
  for (const Start& start : {a, b, c})
    if (last - start.first >= kMinIncrements) starts.push_back(start);
  if (!starts.empty()) {
    const std::size_t from = starts.begin()->first;
    std::size_t jump = from + 1;
    double largest = rise_at(floors, jump);
    for (std::size_t i = from + 2; i <= last; ++i) {
      const double rise = rise_at(floors, i);
      if (rise > largest) jump = i;
      largest = std::max(largest, rise);
    }
    const double net = static_cast<double>(level[last].floor_bytes - level[from].floor_bytes);
    if (largest > kJumpShare * net && last - jump >= kMinIncrements) {
      const std::array<double, kBets> nats = nats_since(level, jump);
      for (std::size_t bet = 0; bet < kBets; ++bet) starts.push_back({jump, bet, nats[bet]});
    }
  }
  return starts;
}

std::array<double, kBets> nats_since(const Level& level, std::size_t first) {
  std::array<double, kBets> sums{};
  for (std::size_t i = first + 1; i < level.size(); ++i) {
    const Bucket& bucket = level[i];
    for (std::size_t bet = 0; bet < kBets; ++bet) sums[bet] += static_cast<double>(bucket.gain_nats[bet]);
  }
  return sums;
}

std::size_t without_flat_beginning(const Floors& floors, std::size_t first) {
  const double base = floors.bytes[first];
  const double flat = kFlatShare * (floors.bytes[floors.size - 1] - base);
  for (std::size_t i = floors.size - 1; i > first; --i)
    if (floors.bytes[i] - base <= flat) return i;
  return first;
}

}  // namespace vramtrack

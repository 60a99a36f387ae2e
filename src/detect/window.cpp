#include "detect/window.hpp"

namespace vramtrack {
namespace {

/// A rise of this share of the net is a jump: what comes after it is a window of its own.
constexpr double kJumpShare = 0.3;
/// Buckets count as flat up to this share of the rise above the base.
constexpr double kFlatShare = 0.02;

double rise_at(const Level& level, std::size_t i) {
  return static_cast<double>(level[i].floor_bytes) - static_cast<double>(level[i - 1].floor_bytes);
}

}  // namespace

Starts starts_of(const Level& level) {
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
  for (std::size_t i = last; i > 0; --i) {
    const Bucket& bucket = level[i];
    sum_a += static_cast<double>(bucket.gain_nats[0]);
    sum_b += static_cast<double>(bucket.gain_nats[1]);
    sum_c += static_cast<double>(bucket.gain_nats[2]);
    if (sum_a > a.nats) a = {i - 1, 0, sum_a};
    if (sum_b > b.nats) b = {i - 1, 1, sum_b};
    if (sum_c > c.nats) c = {i - 1, 2, sum_c};
  }
  for (const Start& start : {a, b, c})
    if (last - start.first >= kMinIncrements) starts.push_back(start);
  if (!starts.empty()) {
    const std::size_t from = starts.begin()->first;
    std::size_t jump = from + 1;
    for (std::size_t i = from + 1; i <= last; ++i)
      if (rise_at(level, i) > rise_at(level, jump)) jump = i;
    const double net = static_cast<double>(level[last].floor_bytes - level[from].floor_bytes);
    if (rise_at(level, jump) > kJumpShare * net && last - jump >= kMinIncrements) {
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

std::size_t without_flat_beginning(const Level& level, std::size_t first) {
  const auto base = static_cast<double>(level[first].floor_bytes);
  const double rise = static_cast<double>(level.back().floor_bytes) - base;
  for (std::size_t i = level.size() - 1; i > first; --i)
    if (static_cast<double>(level[i].floor_bytes) <= base + kFlatShare * rise) return i;
  return first;
}

}  // namespace vramtrack

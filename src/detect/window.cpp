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
  for (std::size_t bet = 0; bet < kBets; ++bet) {
    double sum = 0;
    Start best{last, bet, 0};
    for (std::size_t i = last; i > 0; --i) {
      sum += static_cast<double>(level[i].gain_nats[bet]);
      if (sum > best.nats) best = {i - 1, bet, sum};
    }
    if (last - best.first >= kMinIncrements) starts.push_back(best);
  }
  if (!starts.empty()) {
    const std::size_t from = starts.begin()->first;
    std::size_t jump = from + 1;
    for (std::size_t i = from + 1; i <= last; ++i)
      if (rise_at(level, i) > rise_at(level, jump)) jump = i;
    const double net = static_cast<double>(level[last].floor_bytes - level[from].floor_bytes);
    if (rise_at(level, jump) > kJumpShare * net && last - jump >= kMinIncrements)
      for (std::size_t bet = 0; bet < kBets; ++bet) starts.push_back({jump, bet, nats_since(level, jump, bet)});
  }
  return starts;
}

double nats_since(const Level& level, std::size_t first, std::size_t bet) {
  double sum = 0;
  for (std::size_t i = first + 1; i < level.size(); ++i) sum += static_cast<double>(level[i].gain_nats[bet]);
  return sum;
}

std::size_t without_flat_beginning(const Level& level, std::size_t first) {
  const auto base = static_cast<double>(level[first].floor_bytes);
  const double rise = static_cast<double>(level.back().floor_bytes) - base;
  for (std::size_t i = level.size() - 1; i > first; --i)
    if (static_cast<double>(level[i].floor_bytes) <= base + kFlatShare * rise) return i;
  return first;
}

}  // namespace vramtrack

#include "agent/server/fair_quota.hpp"

#include <algorithm>

namespace vramtrack::agent {

std::uint64_t FairQuota::taken_by(const Peer& peer) const {
  const auto it = by_peer_.find(peer.name);
  return it == by_peer_.end() ? 0 : it->second;
}

FairQuota::Answer FairQuota::ask(const Peer& peer, std::uint64_t amount) const {
  const std::uint64_t most = peer.trusted ? most_ + reserve_ : most_;
  const std::uint64_t free = most - std::min(most, taken_);
  if (amount > free) return Answer::full;
  if (peer.trusted || taken_by(peer) + amount <= free) return Answer::granted;
  return Answer::share_used;
}

FairQuota::Answer FairQuota::take(const Peer& peer, std::uint64_t amount) {
  const Answer answer = ask(peer, amount);
  if (answer == Answer::granted) {
    taken_ += amount;
    by_peer_[peer.name] += amount;
  }
  return answer;
}

void FairQuota::give_back(const Peer& peer, std::uint64_t amount) {
  const auto it = by_peer_.find(peer.name);
  if (it == by_peer_.end()) return;
  const std::uint64_t back = std::min(amount, it->second);
  taken_ -= back;
  if ((it->second -= back) == 0) by_peer_.erase(it);
}

}  // namespace vramtrack::agent

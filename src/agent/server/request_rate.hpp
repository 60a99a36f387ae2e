// RequestRate: limits the requests of one peer, so that many quick ones do not take the processor from others.
#pragma once

#include <map>
#include <string>

#include "agent/server/fair_quota.hpp"

namespace vramtrack::agent {

/// One token bucket per peer: `burst` requests at once, then `per_s`. A trusted peer never waits. Pure: the caller
/// passes the time, in seconds of any monotonic clock. Not thread-safe.
class RequestRate {
 public:
  RequestRate(double per_s, double burst) : per_s_(per_s), burst_(burst) {}

  /// Counts a request of `peer` at `now_s`; returns for how many seconds to delay its answer.
  double wait_s(const Peer& peer, double now_s) {
    if (peer.trusted) return 0;
    if (buckets_.size() >= kMostBuckets) forget(now_s);
    const auto [it, is_new] = buckets_.try_emplace(peer.name, Bucket{burst_, now_s});
    Bucket& bucket = it->second;
    bucket.tokens = tokens(bucket, now_s) - 1;
    bucket.at_s = now_s;
    return bucket.tokens >= 0 ? 0 : -bucket.tokens / per_s_;
  }
  /// Undoes the count of a request that was then refused.
  void give_back(const Peer& peer) {
    if (const auto it = buckets_.find(peer.name); it != buckets_.end()) it->second.tokens += 1;
  }
  [[nodiscard]] std::size_t peers() const { return buckets_.size(); }

 private:
  static constexpr std::size_t kMostBuckets = 1024;  ///< more peers at once only occur with forged addresses
  struct Bucket {
    double tokens = 0;
    double at_s = 0;
  };

  [[nodiscard]] double tokens(const Bucket& bucket, double now_s) const {
    const double refilled = bucket.tokens + (now_s - bucket.at_s) * per_s_;
    return refilled < burst_ ? refilled : burst_;
  }
  /// A client that has been idle for a while has a full bucket anyway. If none has been idle, all start over.
  void forget(double now_s) {
    std::erase_if(buckets_, [&](const auto& b) { return tokens(b.second, now_s) >= burst_; });
    if (buckets_.size() >= kMostBuckets) buckets_.clear();
  }

  double per_s_;
  double burst_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace vramtrack::agent

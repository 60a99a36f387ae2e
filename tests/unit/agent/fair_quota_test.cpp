// Who may take how much: the rule, on its own.
#include "agent/server/fair_quota.hpp"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "agent/server/quota.hpp"
#include "agent/server/request_rate.hpp"

namespace vramtrack::agent {
namespace {

const Peer kEve{"user 1000", false};
const Peer kRoot{"user 0", true};

Peer peer(int n) {
  return {"user " + std::to_string(2000 + n), false};
}

std::uint64_t take_all(FairQuota& quota, const Peer& who) {
  std::uint64_t n = 0;
  while (quota.take(who, 1) == FairQuota::Answer::granted) ++n;
  return n;
}

TEST(FairQuotaTest, OnePeerGetsHalfAndTheOthersTheRest) {
  FairQuota quota(128, 0);
  EXPECT_EQ(take_all(quota, kEve), 64U);
  EXPECT_EQ(quota.ask(kEve, 1), FairQuota::Answer::share_used);
  EXPECT_EQ(take_all(quota, peer(1)), 32U);
  EXPECT_EQ(quota.ask(peer(2), 1), FairQuota::Answer::granted);
}

TEST(FairQuotaTest, PeersInTurnLeaveTheNextOneAsMuchAsEachHas) {
  for (int peers = 1; peers <= 20; ++peers) {
    FairQuota quota(2520, 0);
    for (bool any = true; any;) {
      any = false;
      for (int n = 0; n < peers; ++n) any = (quota.take(peer(n), 1) == FairQuota::Answer::granted) || any;
    }
    EXPECT_GE(2520 - quota.taken(), 2520U / (static_cast<unsigned>(peers) + 1)) << peers;
    EXPECT_EQ(quota.ask(peer(99), 1), FairQuota::Answer::granted) << peers;
  }
}

TEST(FairQuotaTest, OfFewPlacesEveryPeerMayHaveTheLast) {
  FairQuota quota(2, 0);
  EXPECT_EQ(take_all(quota, kEve), 1U);
  EXPECT_EQ(take_all(quota, peer(1)), 1U);
  EXPECT_EQ(quota.ask(peer(2), 1), FairQuota::Answer::full);
}

TEST(FairQuotaTest, TheReserveIsForThoseWhoAreTrusted) {
  FairQuota quota(10, 3);
  for (int n = 0; n < 100; ++n) quota.take(peer(n), 1);
  EXPECT_EQ(quota.taken(), 10U);
  EXPECT_EQ(quota.ask(kEve, 1), FairQuota::Answer::full);
  EXPECT_EQ(take_all(quota, kRoot), 3U);
  EXPECT_EQ(quota.ask(kRoot, 1), FairQuota::Answer::full);
  quota.give_back(peer(0), 1);
  EXPECT_EQ(quota.ask(kEve, 1), FairQuota::Answer::full) << "root holds it beyond the reserve";
  EXPECT_EQ(quota.ask(kRoot, 1), FairQuota::Answer::granted);
}

TEST(FairQuotaTest, WhoIsTrustedMayHaveAllThatIsFree) {
  FairQuota quota(10, 3);
  EXPECT_EQ(take_all(quota, kRoot), 13U);
}

TEST(FairQuotaTest, AmountsAreShared) {
  FairQuota quota(64, 24);  // MiB of answers that nobody reads, of 10 each
  for (int n = 0; n < 3; ++n) EXPECT_EQ(quota.take(kEve, 10), FairQuota::Answer::granted);
  EXPECT_EQ(quota.take(kEve, 10), FairQuota::Answer::share_used);
  EXPECT_EQ(quota.take(peer(1), 10), FairQuota::Answer::granted);
  EXPECT_EQ(quota.take(peer(1), 100), FairQuota::Answer::full);
  quota.give_back(kEve, 10);
  EXPECT_EQ(quota.taken_by(kEve), 20U);
  EXPECT_EQ(quota.taken(), 30U);
}

TEST(FairQuotaTest, WhatIsGivenBackTooOftenChangesNothing) {
  FairQuota quota(4, 0);
  quota.take(kEve, 2);
  quota.give_back(kEve, 5);
  quota.give_back(peer(1), 1);
  EXPECT_EQ(quota.taken(), 0U);
  EXPECT_EQ(take_all(quota, kEve), 2U);
}

TEST(FairQuotaTest, ALowerLimitLeavesWhatIsTaken) {
  FairQuota quota(10, 0);
  EXPECT_EQ(take_all(quota, kRoot), 10U);
  quota.set_most(4);
  EXPECT_EQ(quota.ask(kEve, 1), FairQuota::Answer::full);
  quota.give_back(kRoot, 8);
  EXPECT_EQ(quota.ask(kEve, 1), FairQuota::Answer::granted);
}

TEST(QuotaTest, WhatIsHeldGoesBackByItself) {
  Quota quota(2, 0);
  {
    const Quota::Taken one = quota.take(kEve);
    EXPECT_EQ(one.answer, FairQuota::Answer::granted);
    EXPECT_EQ(quota.take(kEve).answer, FairQuota::Answer::share_used);
    EXPECT_EQ(quota.taken(), 1U);
  }
  EXPECT_EQ(quota.taken(), 0U);
}

TEST(QuotaTest, WhoWaitsIsServedWhenSomethingComesFree) {
  Quota quota(1, 0);
  Quota::Taken held = quota.take(kEve);
  std::thread other([&] {
    const Quota::Taken taken = quota.take(peer(1), 1, std::chrono::seconds(60));
    EXPECT_EQ(taken.answer, FairQuota::Answer::granted);
  });
  held.held = {};
  other.join();
  EXPECT_EQ(quota.taken(), 0U);
}

TEST(RequestRateTest, ABurstAndThenSoManyASecond) {
  RequestRate rate(10, 5);
  for (int n = 0; n < 5; ++n) EXPECT_EQ(rate.wait_s(kEve, 100), 0) << n;
  EXPECT_DOUBLE_EQ(rate.wait_s(kEve, 100), 0.1);
  EXPECT_DOUBLE_EQ(rate.wait_s(kEve, 100), 0.2);
  EXPECT_EQ(rate.wait_s(peer(1), 100), 0) << "another peer has a bucket of its own";
  EXPECT_NEAR(rate.wait_s(kEve, 100.2), 0.1, 1e-9);
  for (int n = 0; n < 5; ++n) EXPECT_EQ(rate.wait_s(kEve, 200), 0) << n;
  EXPECT_GT(rate.wait_s(kEve, 200), 0);
}

TEST(RequestRateTest, WhoIsTrustedNeverWaits) {
  RequestRate rate(1, 1);
  for (int n = 0; n < 100; ++n) EXPECT_EQ(rate.wait_s(kRoot, 0), 0);
}

TEST(RequestRateTest, MemoryIsBounded) {
  RequestRate rate(1, 2);
  for (int n = 0; n < 10'000; ++n) {
    rate.wait_s(peer(n), n * 0.0001);
    ASSERT_LE(rate.peers(), 1024U);
  }
}

}  // namespace
}  // namespace vramtrack::agent

#include "actuate/rescan.hpp"

#include <gmock/gmock.h>

#include "../fleet/stub_server.hpp"
#include "fleet_views.hpp"

namespace vramtrack::actuate {
namespace {

using fleet::StubServer;
using testing::HasSubstr;

constexpr std::int64_t kBegin_ms = 1'770'000'000'000;

Timestamp at_ms(std::int64_t ms) {
  return Timestamp{std::chrono::milliseconds{ms}};
}

class Rescans : public testing::Test {
 protected:
  Rescans() {
    options_.mapping = std::make_shared<const fleet::Mapping>(fleet::Mapping::read().value());
    for (int i = 0; i < 3 * 120; ++i) {
      server_.put("leaks", kBegin_ms + i * 30'000, 20'000 + 80 * i);
      server_.put("idles", kBegin_ms + i * 30'000, 20'000);
    }
  }
  Result<Witness> ask(const Labels& labels, double after_s = 30) {
    return rescan(server_.reader(), options_, labels,
                  at_ms(kBegin_ms + 3 * 3'600'000 + static_cast<std::int64_t>(after_s * 1000)));
  }

  StubServer server_;
  RescanOptions options_;
};

TEST_F(Rescans, ALeakStandsInTheViewOfItsMachine) {
  const auto witness = ask({{"Hostname", "leaks"}});
  ASSERT_TRUE(witness) << witness.error().message;
  EXPECT_EQ(witness->host, "leaks");
  const act::Observation seen = observation_of(*witness, "gn1");
  ASSERT_EQ(seen.subjects.size(), 1U);
  EXPECT_EQ(seen.subjects[0].device_id, "GPU-leaks");
  EXPECT_EQ(seen.subjects[0].process.pid, 0U) << "no process is known";
  act::Claim claim;
  claim.labels = {{"Hostname", "leaks"}, {"UUID", "GPU-leaks"}};
  EXPECT_TRUE(evidence_of(climb_of(claim), "gn1", witness->host, seen).subject);
}

TEST_F(Rescans, AHealthyMachineIsNoEvidence) {
  const auto witness = ask({{"Hostname", "idles"}});
  ASSERT_TRUE(witness) << witness.error().message;
  EXPECT_TRUE(observation_of(*witness, "gn2").subjects.empty());
}

TEST_F(Rescans, WhatCannotBeSaidIsAnError) {
  EXPECT_THAT(ask({{"gpu", "0"}}).error().message, HasSubstr("names no GPU and no machine"));
  EXPECT_THAT(ask({{"Hostname", "elsewhere"}}).error().message,
              HasSubstr("has no memory series for Hostname=\"elsewhere\""));
  EXPECT_THAT(ask({{"Hostname", "leaks"}}, 900).error().message,
              HasSubstr("the last sample of Hostname=\"leaks\" is 16m old"));
  server_.set_failing(true);
  EXPECT_FALSE(ask({{"Hostname", "leaks"}}));
}

}  // namespace
}  // namespace vramtrack::actuate

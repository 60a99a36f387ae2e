#include "telemetry/context_blocks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/wire.hpp"

namespace vramtrack::telemetry {
namespace {

using probe::Call;
using testing::ElementsAre;
using testing::IsEmpty;

using Arrival = ContextBlocks::Arrival;

constexpr std::uint64_t kOne = 0x1000, kOther = 0x2000, kPrimary = 0x3000;

telemetry_event block(std::uint64_t address, std::uint64_t context, int device = 0, Call call = Call::cu_mem_alloc) {
  telemetry_event event{};
  event.kind = TELEMETRY_EVENT_ALLOC;
  event.call = static_cast<telemetry_u32>(call);
  event.address = address;
  event.bytes = 1;
  event.context = context;
  event.device = static_cast<telemetry_u16>(1 | device << 8);
  return event;
}

telemetry_event change(telemetry_act act, std::uint64_t context, int device = 0) {
  telemetry_event event = block(context, 0, device);
  event.kind = TELEMETRY_EVENT_CONTEXT;
  event.result = act;
  return event;
}

TEST(ContextBlocks, AContextTakesItsOwnMemoryAlongAndNoOther) {
  ContextBlocks blocks;
  blocks.allocated(block(11, kOne));
  blocks.allocated(block(10, kOne));
  blocks.allocated(block(12, kOne));
  blocks.allocated(block(20, kOther));
  blocks.allocated(block(30, 0));
  blocks.allocated(block(40, kOne, 0, Call::cu_mem_create));
  blocks.allocated(block(41, kOne, 0, Call::cu_mem_alloc_async));
  blocks.freed(block(12, 0));
  EXPECT_THAT(blocks.changed(change(TELEMETRY_END_CONTEXT, kOne)), ElementsAre(10, 11));
  EXPECT_THAT(blocks.changed(change(TELEMETRY_END_CONTEXT, kOne)), IsEmpty());
  EXPECT_THAT(blocks.changed(change(TELEMETRY_END_CONTEXT, kOther)), ElementsAre(20));
}

TEST(ContextBlocks, AnAddressThatIsGivenOutAgainLivesWhereItWasAllocatedLast) {
  ContextBlocks blocks;
  blocks.allocated(block(10, kOne));
  blocks.allocated(block(10, kOther));
  EXPECT_THAT(blocks.changed(change(TELEMETRY_END_CONTEXT, kOne)), IsEmpty());
}

TEST(ContextBlocks, AFreeEndsTheBlockThatWasThereWhenItBegan) {
  const auto at = [](telemetry_event event, std::uint64_t began_ns, std::uint64_t time_ns) {
    event.began_ns = began_ns;
    event.time_ns = time_ns;
    return event;
  };
  for (const Call call : {Call::cu_mem_alloc, Call::ze_mem_alloc_device}) {
    ContextBlocks blocks;
    EXPECT_EQ(Arrival::fresh, blocks.allocated(at(block(10, kOne, 0, call), 0, 100)));
    // Another thread receives the address before the call that released it has returned.
    EXPECT_EQ(Arrival::replaces, blocks.allocated(at(block(10, kOne, 0, call), 0, 250)));
    EXPECT_FALSE(blocks.freed(at(block(10, 0, 0, call), 200, 300)));
    EXPECT_TRUE(blocks.freed(at(block(10, 0, 0, call), 400, 500)));
    EXPECT_EQ(Arrival::fresh, blocks.allocated(at(block(10, kOne, 0, call), 0, 600)));
    EXPECT_TRUE(blocks.freed(at(block(10, 0, 0, call), 0, 700)));    // reported when it begins
    EXPECT_TRUE(blocks.freed(at(block(11, 0, 0, call), 800, 900)));  // from before
  }
}

TEST(ContextBlocks, AResetTakesThePrimaryContextOfTheDeviceAndItsPools) {
  ContextBlocks blocks;
  EXPECT_THAT(blocks.changed(change(TELEMETRY_NEW_CONTEXT, kPrimary, 1)), IsEmpty());
  blocks.allocated(block(10, kPrimary, 1));
  blocks.allocated(block(11, 0, 1));  // most likely in the primary context
  blocks.allocated(block(12, kPrimary, 1, Call::cu_mem_alloc_async));
  blocks.allocated(block(13, kPrimary, 1, Call::cu_mem_create));
  blocks.allocated(block(14, kOne, 1));
  blocks.allocated(block(15, 0, 0));
  EXPECT_THAT(blocks.changed(change(TELEMETRY_END_DEVICE, 0, 1)), ElementsAre(10, 11, 12));
}

TEST(ContextBlocks, OfHipAllThatADeviceHasEndsWithItsReset) {
  ContextBlocks blocks;
  blocks.allocated(block(10, 0, 1, Call::hip_malloc));
  blocks.allocated(block(11, 0, 1, Call::hip_mem_create));
  blocks.allocated(block(12, 0, 0, Call::hip_malloc));
  EXPECT_THAT(blocks.changed(change(TELEMETRY_END_DEVICE, 0, 1)), ElementsAre(10, 11));
}

TEST(ContextBlocks, ThePrimaryContextEndsWithItsLastOwnerWhereAllAreKnown) {
  for (const bool knows_owners : {false, true}) {
    ContextBlocks blocks;
    if (knows_owners) blocks.set_owners_known();
    blocks.changed(change(TELEMETRY_NEW_CONTEXT, kPrimary));
    blocks.changed(change(TELEMETRY_NEW_CONTEXT, kPrimary));
    blocks.allocated(block(10, kPrimary));
    EXPECT_THAT(blocks.changed(change(TELEMETRY_RELEASE_PRIMARY, 0)), IsEmpty());
    EXPECT_THAT(blocks.changed(change(TELEMETRY_RELEASE_PRIMARY, 0)).size(), knows_owners ? 1U : 0U);
    blocks.allocated(block(11, kPrimary));
    EXPECT_THAT(blocks.changed(change(TELEMETRY_RELEASE_PRIMARY, 0)), IsEmpty());  // refused: nobody owns it
  }
}

TEST(ContextBlocks, APrimaryContextWithAnOwnerThatWasNotSeenDoesNotEndWithTheOthers) {
  for (const std::uint64_t context : {std::uint64_t{0}, kPrimary}) {
    ContextBlocks blocks;
    blocks.set_owners_known();
    blocks.allocated(block(10, context));
    blocks.changed(change(TELEMETRY_NEW_CONTEXT, kPrimary));
    EXPECT_THAT(blocks.changed(change(TELEMETRY_RELEASE_PRIMARY, 0)), IsEmpty()) << context;
    EXPECT_THAT(blocks.changed(change(TELEMETRY_END_DEVICE, 0)), ElementsAre(10)) << context;
  }
}

TEST(ContextBlocks, AContextAndItsModulesEndWithIt) {
  ContextBlocks blocks;
  EXPECT_EQ(blocks.allocated(block(kOne, kOne, 0, Call::cu_context)), Arrival::fresh);
  blocks.allocated(block(10, kOne, 0, Call::cu_module));
  blocks.allocated(block(11, kOne, 0, Call::cu_library));
  EXPECT_THAT(blocks.changed(change(TELEMETRY_END_CONTEXT, kOne)), ElementsAre(10, kOne));
}

TEST(ContextBlocks, APrimaryContextCountsOnceWhereItsOwnersAreKnown) {
  const telemetry_event primary = block(kPrimary, kPrimary, 0, Call::cu_primary_context);
  ContextBlocks blocks;
  EXPECT_EQ(blocks.allocated(primary), Arrival::known) << "it may have been there before";
  blocks.set_owners_known();
  for (const auto arrival : {Arrival::fresh, Arrival::known}) {
    blocks.changed(change(TELEMETRY_NEW_CONTEXT, kPrimary));
    EXPECT_EQ(blocks.allocated(primary), arrival);
  }
  EXPECT_THAT(blocks.changed(change(TELEMETRY_RELEASE_PRIMARY, 0)), IsEmpty());
  EXPECT_THAT(blocks.changed(change(TELEMETRY_RELEASE_PRIMARY, 0)), ElementsAre(kPrimary));
  EXPECT_EQ(blocks.allocated(primary), Arrival::fresh);
}

TEST(ContextBlocks, AnAllocatorsBlocksAreNoneOfTheContext) {
  ContextBlocks blocks;
  blocks.allocated(block(10, kOne));
  blocks.allocated(block(10, 0, 0, Call::torch_block));
  blocks.freed(block(10, 0, 0, Call::torch_block));
  EXPECT_THAT(blocks.changed(change(TELEMETRY_END_CONTEXT, kOne)), ElementsAre(10));
}

TEST(ContextBlocks, KeepsALimitedNumberOfBlocks) {
  ContextBlocks blocks;
  for (std::uint64_t address = 1; address <= ContextBlocks::kMostBlocks + 10; ++address)
    blocks.allocated(block(address, kOne));
  EXPECT_EQ(blocks.changed(change(TELEMETRY_END_CONTEXT, kOne)).size(), ContextBlocks::kMostBlocks);
}

}  // namespace
}  // namespace vramtrack::telemetry

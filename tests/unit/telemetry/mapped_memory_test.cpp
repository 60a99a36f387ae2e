#include "telemetry/mapped_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/wire.hpp"

namespace vramtrack::telemetry {
namespace {

using probe::Call;
using testing::IsEmpty;

constexpr std::uint64_t kHandle = 7, kOther = 8, kPlace = 0x1000, kBytes = 0x100;

/// A program whose calls take 10 ns, one after another.
class Calls {
 public:
  std::uint64_t create(std::uint64_t handle) { return memory.created(event(TELEMETRY_EVENT_ALLOC, handle)); }
  auto release(std::uint64_t handle) { return memory.changed(event(TELEMETRY_EVENT_FREE, handle)); }
  auto map(std::uint64_t address, std::uint64_t handle) { return mapped(TELEMETRY_MAP, address, handle); }
  auto unmap(std::uint64_t address) { return mapped(TELEMETRY_UNMAP, address, 0); }
  auto retain(std::uint64_t handle, std::uint64_t address) { return mapped(TELEMETRY_RETAIN_MAPPED, address, handle); }

  MappedMemory memory;
  std::uint64_t now_ns = 0, took_ns = 10;

 private:
  telemetry_event event(telemetry_kind kind, std::uint64_t address) {
    telemetry_event event{};
    event.kind = kind;
    event.call = static_cast<telemetry_u32>(Call::cu_mem_create);
    event.address = address;
    event.began_ns = now_ns + 10 - took_ns;
    event.time_ns = now_ns += 10;
    return event;
  }
  std::vector<MappedMemory::Change> mapped(telemetry_act act, std::uint64_t address, std::uint64_t handle) {
    telemetry_event made = event(TELEMETRY_EVENT_MAPPED, address);
    made.result = act;
    made.bytes = kBytes;
    made.context = handle;
    return memory.changed(made);
  }
};

void expect(const std::vector<MappedMemory::Change>& changes, std::uint64_t key, std::uint64_t address) {
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, key);
  EXPECT_EQ(changes[0].address, address);
  EXPECT_EQ(changes[0].bytes, address == 0 ? 0 : kBytes);
  EXPECT_FALSE(changes[0].is_gone);
}

void expect_gone(const std::vector<MappedMemory::Change>& changes, std::uint64_t key) {
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, key);
  EXPECT_TRUE(changes[0].is_gone);
}

TEST(MappedMemory, IsGoneWithTheLastOfItsHandlesAndMappings) {
  Calls calls;
  const std::uint64_t key = calls.create(kHandle);
  expect(calls.map(kPlace, kHandle), key, kPlace);
  EXPECT_THAT(calls.release(kHandle), IsEmpty());
  EXPECT_FALSE(calls.memory.has(kHandle));
  expect_gone(calls.unmap(kPlace), key);
  EXPECT_THAT(calls.unmap(kPlace), IsEmpty());
  const std::uint64_t next = calls.create(kHandle);
  EXPECT_NE(next, key);
  expect_gone(calls.release(kHandle), next);
}

TEST(MappedMemory, LiesWhereItIsMappedFirstAndThenWhereItStillIs) {
  Calls calls;
  const std::uint64_t key = calls.create(kHandle);
  expect(calls.map(kPlace, kHandle), key, kPlace);
  EXPECT_THAT(calls.map(kPlace + kBytes, kHandle), IsEmpty());
  expect(calls.unmap(kPlace), key, kPlace + kBytes);
  expect(calls.unmap(kPlace + kBytes), key, 0);
  expect(calls.map(kPlace, kHandle), key, kPlace);
}

TEST(MappedMemory, AHandleOfWhatIsMappedKeepsIt) {
  for (const std::uint64_t handle : {kHandle, kOther}) {  // drivers return the same one, or another one
    Calls calls;
    const std::uint64_t key = calls.create(kHandle);
    calls.map(kPlace, kHandle);
    EXPECT_THAT(calls.retain(handle, kPlace + 1), IsEmpty());
    EXPECT_THAT(calls.retain(kOther, kPlace + kBytes), IsEmpty());  // nothing is mapped there
    EXPECT_THAT(calls.release(kHandle), IsEmpty());
    expect(calls.unmap(kPlace), key, 0);
    expect_gone(calls.release(handle), key);
  }
}

TEST(MappedMemory, ACallThatBeganBeforeAHandleOrAPlaceWasGivenOutAgainIsOfTheOneBefore) {
  Calls calls;
  const std::uint64_t before = calls.create(kHandle);
  calls.map(kPlace, kHandle);
  calls.release(kHandle);
  const std::uint64_t key = calls.create(kHandle);
  // A new mapping there ends the previous one.
  const auto changes = calls.map(kPlace, kHandle);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].key, before);
  EXPECT_TRUE(changes[0].is_gone);
  EXPECT_EQ(changes[1].key, key);
  calls.took_ns = calls.now_ns + 10;
  EXPECT_THAT(calls.unmap(kPlace), IsEmpty());
  EXPECT_THAT(calls.release(kHandle), IsEmpty());
  EXPECT_TRUE(calls.memory.has(kHandle));
  calls.took_ns = 10;
  EXPECT_THAT(calls.release(kHandle), IsEmpty());
  expect_gone(calls.unmap(kPlace), key);
}

TEST(MappedMemory, WhatWasThereBeforeIsNotKnown) {
  Calls calls;
  EXPECT_FALSE(calls.memory.has(kHandle));
  EXPECT_THAT(calls.map(kPlace, kHandle), IsEmpty());
  EXPECT_THAT(calls.unmap(kPlace), IsEmpty());
  EXPECT_THAT(calls.release(kHandle), IsEmpty());
}

TEST(MappedMemory, EndsWithItsDevice) {
  Calls calls;
  const std::uint64_t key = calls.create(kHandle);
  calls.map(kPlace, kHandle);
  calls.memory.ended(key);
  EXPECT_FALSE(calls.memory.has(kHandle));
  EXPECT_THAT(calls.unmap(kPlace), IsEmpty());
}

}  // namespace
}  // namespace vramtrack::telemetry

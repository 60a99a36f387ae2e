// Memory lives until its handles are released and nothing maps it, in whatever order.
#include "probe/cuda/physical.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace vramtrack::probe::cuda {
namespace {

constexpr std::uint64_t kAt = 0x7f0000000000, kPiece = 1U << 21U;

TEST(PhysicalMemory, IsHeldWhereItIsMapped) {
  PhysicalMemory memory;
  const std::uint64_t key = memory.create(5, kPiece, Call::cu_mem_create, 0);
  const Move mapped = memory.map(5, kAt, kPiece);
  EXPECT_EQ(mapped.from, key);
  EXPECT_EQ(mapped.to, kAt);
  EXPECT_EQ(memory.release(5).move.from, 0U) << "it is mapped still";
  std::uint64_t address = kAt;
  Move gone;
  ASSERT_TRUE(memory.unmap(address, kAt + kPiece, gone));
  EXPECT_EQ(gone.from, kAt);
  EXPECT_EQ(gone.to, 0U);
  EXPECT_FALSE(memory.unmap(address, kAt + kPiece, gone));
}

TEST(PhysicalMemory, AHandleMayBeUsedAgainWhileItsMemoryIsMapped) {
  PhysicalMemory memory;
  const std::uint64_t first = memory.create(0, kPiece, Call::cu_mem_create, 0);  // 0 is a handle like any other
  memory.map(0, kAt, kPiece);
  memory.release(0);
  const std::uint64_t second = memory.create(0, kPiece, Call::cu_mem_create, 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(memory.release(0).move.from, second);
  std::uint64_t address = kAt;
  Move gone;
  ASSERT_TRUE(memory.unmap(address, kAt + kPiece, gone));
  EXPECT_EQ(gone.from, kAt);
}

TEST(PhysicalMemory, ARefusedReleaseIsUndone) {
  PhysicalMemory memory;
  const std::uint64_t key = memory.create(9, kPiece, Call::cu_mem_create, 0);
  memory.undo(memory.release(9));
  EXPECT_EQ(memory.release(9).move.from, key);
  memory.undo(memory.release(9));  // no longer known
  EXPECT_EQ(memory.map(9, kAt, kPiece).to, 0U);
}

TEST(PhysicalMemory, WhatIsBoundStaysUntilItIsUnboundOrItsGroupIsGone) {
  PhysicalMemory memory;
  memory.create(1, 4 * kPiece, Call::cu_multicast_create, 0);
  const std::uint64_t first = memory.create(2, kPiece, Call::cu_mem_create, 0);
  const std::uint64_t second = memory.create(3, kPiece, Call::cu_mem_create, 1);
  Move move;
  EXPECT_FALSE(memory.unbind_from_gone(move));
  memory.bind(1, 0, 2);
  memory.bind(1, 0, 3);
  EXPECT_EQ(memory.release(2).move.from, 0U);
  EXPECT_EQ(memory.release(3).move.from, 0U);
  EXPECT_FALSE(memory.unbind(1, 0, kPiece, kPiece, move)) << "nothing is bound there";
  ASSERT_TRUE(memory.unbind(1, 0, 0, kPiece, move));
  EXPECT_EQ(move.from, first);
  EXPECT_FALSE(memory.unbind(1, 0, 0, kPiece, move)) << "the other one is of device 1";
  EXPECT_FALSE(memory.unbind_from_gone(move));
  memory.release(1);
  ASSERT_TRUE(memory.unbind_from_gone(move));
  EXPECT_EQ(move.from, second);
  EXPECT_FALSE(memory.unbind_from_gone(move));
}

TEST(PhysicalMemory, AnImportCountsFromItsFirstMapping) {
  PhysicalMemory memory;
  memory.create(3, 0, Call::cu_mem_import, 1);
  const Move came = memory.map(3, kAt, 3 * kPiece);
  EXPECT_EQ(came.from, 0U);
  EXPECT_EQ(came.bytes, 3 * kPiece);
  EXPECT_EQ(came.call, Call::cu_mem_import);
  EXPECT_EQ(came.device, 1);
}

TEST(PhysicalMemory, UnmappingFindsAllInTheRange) {
  PhysicalMemory memory;
  for (std::uint64_t i = 0; i < 200; ++i) {
    memory.create(i, kPiece, Call::cu_mem_create, 0);
    memory.map(i, kAt + 3 * i * kPiece, kPiece);  // with gaps
    memory.release(i);
  }
  std::uint64_t address = kAt;
  Move gone;
  std::uint64_t count = 0;
  while (memory.unmap(address, kAt + 300 * kPiece, gone)) ++count;
  EXPECT_EQ(count, 100U);
}

/// Compares with a simple model: the table must hold what is referenced or mapped.
TEST(PhysicalMemory, AgreesWithAModel) {
  PhysicalMemory memory;
  struct Piece {
    int references = 1, mappings = 0;
  };
  std::map<std::uint64_t, Piece> pieces;          // by handle, which is not reused
  std::map<std::uint64_t, std::uint64_t> mapped;  // address -> handle
  std::map<std::uint64_t, std::uint64_t> held;    // key -> bytes
  std::mt19937_64 random(11);
  const auto follow = [&](const Move& move) {
    if (move.from != 0 && move.to == 0) {
      ASSERT_EQ(held.erase(move.from), 1U);
    } else if (move.from != move.to) {
      ASSERT_EQ(held.erase(move.from), 1U);
      ASSERT_TRUE(held.emplace(move.to, kPiece).second);
    }
  };
  std::uint64_t last = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t handle = last == 0 ? 0 : 1 + random() % last;
    const auto piece = pieces.find(handle);
    const bool is_open = piece != pieces.end() && piece->second.references > 0;
    const std::uint64_t address = kAt + random() % 64 * kPiece;
    switch (random() % 5) {
      case 0:
        held.emplace(memory.create(++last, kPiece, Call::cu_mem_create, 0), kPiece);
        pieces[last] = {};
        break;
      case 1:
        if (!is_open || mapped.contains(address)) break;
        follow(memory.map(handle, address, kPiece));
        mapped[address] = handle;
        ++piece->second.mappings;
        break;
      case 2:
        if (!is_open) break;
        follow(memory.release(handle).move);
        --piece->second.references;
        break;
      case 3:
        if (!mapped.contains(address)) break;
        memory.retain(mapped[address], address);
        ++pieces[mapped[address]].references;
        break;
      default: {
        std::uint64_t from = address;
        Move move;
        while (memory.unmap(from, address + 4 * kPiece, move)) {
          follow(move);
          const std::uint64_t gone = from - kPiece;
          --pieces[mapped.at(gone)].mappings;
          mapped.erase(gone);
        }
      }
    }
    std::size_t alive = 0;
    for (const auto& [key, known] : pieces) alive += known.references + known.mappings > 0 ? 1 : 0;
    ASSERT_EQ(held.size(), alive) << "step " << i;
    if (i % 50 == 0) std::erase_if(pieces, [](const auto& p) { return p.second.references + p.second.mappings == 0; });
  }
}

}  // namespace
}  // namespace vramtrack::probe::cuda

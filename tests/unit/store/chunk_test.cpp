#include "store/chunk.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <tuple>

namespace vramtrack {
namespace {

using Point = std::tuple<std::int64_t, std::uint32_t, std::uint64_t>;
using Lanes = std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::uint64_t>>>;

Lanes lanes_of(const std::vector<Point>& points) {
  Lanes lanes;
  for (const auto& [time, series, value] : points) lanes[series].emplace_back(time, value);
  return lanes;
}

Lanes lanes_of(const Chunk& chunk) {
  Lanes lanes;
  for (const auto& series : chunk.series)
    for (std::uint32_t i = 0; i < series.count; ++i)
      lanes[series.id].emplace_back(chunk.times_ns[chunk.ticks[series.first + i]], chunk.value(series, i));
  return lanes;
}

Bytes packed(const ChunkBuilder& builder) {
  Compressor compressor;
  return compressor.compress(builder.payload(), 3).value();
}

TEST(Chunk, AnyPointsReturnExactly) {
  EXPECT_TRUE(rc::check([](const std::vector<Point>& points) {
    RC_PRE(!points.empty());
    ChunkBuilder builder;
    for (int round = 0; round < 2; ++round) {  // a builder is reused, so nothing may be left over
      builder.clear();
      for (const auto& [time, series, value] : points) builder.add(time, series, value);
    }
    const auto chunk = decode_chunk(packed(builder));
    RC_ASSERT(chunk.has_value());
    RC_ASSERT(lanes_of(*chunk) == lanes_of(points));

    Lanes visited;
    builder.for_each([&](std::uint32_t series, std::size_t tick, std::uint64_t value) {
      visited[series].emplace_back(builder.times_ns()[tick], value);
    });
    RC_ASSERT(visited == lanes_of(points));
  }));
}

TEST(Chunk, TicksWithGapsReturnExactly) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint8_t, std::uint64_t>>& ticks) {
    RC_PRE(!ticks.empty());
    std::vector<Point> points;
    for (std::size_t i = 0; i < ticks.size(); ++i)
      for (std::uint32_t s = 0; s < 8; ++s)
        if (ticks[i].first >> s & 1)
          points.emplace_back(static_cast<std::int64_t>(i) * 1'000'000'000, 7 * s + 3, ticks[i].second << s);
    RC_PRE(!points.empty());
    ChunkBuilder builder;
    for (const auto& [time, series, value] : points) builder.add(time, series, value);
    const auto chunk = decode_chunk(packed(builder));
    RC_ASSERT(chunk.has_value());
    RC_ASSERT(lanes_of(*chunk) == lanes_of(points));
  }));
}

TEST(Chunk, ExtremesReturnExactly) {
  ChunkBuilder builder;
  const std::vector<Point> points = {{INT64_MIN, 0, UINT64_MAX}, {INT64_MAX, 0, 0},   {INT64_MAX, 0, UINT64_MAX},
                                     {0, UINT32_MAX, 1},         {-1, 0, 1ULL << 63}, {INT64_MIN, UINT32_MAX, 0}};
  for (const auto& [time, series, value] : points) builder.add(time, series, value);
  const auto chunk = decode_chunk(packed(builder));
  ASSERT_TRUE(chunk) << chunk.error().message;
  EXPECT_EQ(lanes_of(*chunk), lanes_of(points));
  EXPECT_EQ(builder.min_ns(), INT64_MIN);
  EXPECT_EQ(builder.max_ns(), INT64_MAX);
}

TEST(Chunk, ColumnsOfAPointStayTogether) {
  ChunkBuilder builder(3);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const std::array<std::uint64_t, 3> values = {i, 10 * i, 100 * i};
    builder.add(static_cast<std::int64_t>(i), 9, values);
  }
  const auto chunk = decode_chunk(packed(builder));
  ASSERT_TRUE(chunk);
  ASSERT_EQ(chunk->columns, 3U);
  for (std::size_t i = 0; i < 5; ++i)
    for (unsigned c = 0; c < 3; ++c)
      EXPECT_EQ(chunk->value(chunk->series[0], i, c), i * (c == 0 ? 1U : c == 1 ? 10U : 100U));
}

/// The document's example, byte by byte: three ticks at intervals of a second, series 2 flat, series 5 in the last two.
TEST(Chunk, TheDocumentedExampleIsWhatIsWritten) {
  ChunkBuilder builder;
  const std::int64_t second = 1'000'000'000;
  for (std::int64_t t = 0; t < 3; ++t) {
    builder.add((100 + t) * second, 2, 4U << 20);
    if (t > 0) builder.add((100 + t) * second, 5, 7U + static_cast<std::uint64_t>(t));
  }
  const Bytes expected = {1,    1,    3,  3, 2,          // format, columns, seconds, 3 ticks, 2 series
                          0xc8, 0x01, 2,  0,             // 100, +1, +1
                          2,    3,    22, 2, 0, 0,       // id 2, 3 points: all ticks; unit 2^22: 1 1 1
                          3,    2,    4,  1, 0, 16, 2};  // id 5, 2 points: ticks 1, 2; unit 1: 8 9
  EXPECT_EQ(builder.payload(), expected);
}

TEST(Chunk, AFlatSeriesTakesNextToNothing) {
  ChunkBuilder builder;
  for (std::int64_t t = 0; t < 900; ++t)
    for (std::uint32_t s = 0; s < 72; ++s) builder.add(t * 1'000'000'000, s, std::uint64_t{s} << 21);
  EXPECT_LT(packed(builder).size(), 2000U);
}

TEST(Chunk, EveryFlippedBitIsFound) {
  ChunkBuilder builder;
  for (std::int64_t t = 0; t < 50; ++t)
    for (std::uint32_t s = 0; s < 5; ++s) builder.add(t * 997'000'000, s, static_cast<std::uint64_t>(t * t) * s);
  const Bytes good = packed(builder);
  const auto expected = lanes_of(*decode_chunk(good));
  for (std::size_t byte = 0; byte < good.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[byte] = static_cast<std::uint8_t>(bad[byte] ^ (1 << bit));
      const auto chunk = decode_chunk(bad);
      // A few header bits of a zstd frame have no meaning; the content is then unchanged.
      if (chunk) {
        EXPECT_EQ(lanes_of(*chunk), expected) << byte << ":" << bit;
      }
    }
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(decode_chunk({good.data(), size})) << size;
}

TEST(Chunk, LyingPayloadsAreRefusedWithTheOffset) {
  const std::vector<Bytes> lies = {{},
                                   {2},                                         // a format of the future
                                   {1, 0, 0},                                   // no column
                                   {1, 5, 0},                                   // too many
                                   {1, 1, 4, 1, 1, 0, 0, 1, 0, 0},              // no such unit
                                   {1, 1, 0, 0xff, 0xff, 0xff, 0x7f, 1},        // ticks that are not there
                                   {1, 1, 0, 1, 1, 0, 0, 2, 0, 0},              // more points than ticks
                                   {1, 1, 0, 1, 1, 0, 0, 1, 64, 0},             // a unit of 2^64
                                   {1, 1, 0, 2, 1, 0, 0, 0, 1, 0, 0, 0, 0},     // a tick gap of 0
                                   {1, 1, 0, 1, 2, 0, 3, 1, 0, 0, 0, 1, 0, 0},  // a series twice
                                   {1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 9}};          // bytes behind the end
  for (std::size_t i = 0; i < lies.size(); ++i) {
    const auto chunk = decode_payload(lies[i]);
    ASSERT_FALSE(chunk) << i;
    EXPECT_FALSE(chunk.error().message.empty());
  }
  EXPECT_NE(decode_payload(lies[10]).error().message.find("byte 10"), std::string::npos);
}

TEST(Chunk, ATickBehindTheTimeColumnIsRefused) {
  const auto with_gap = [](std::uint8_t gap) {  // 3 ticks, one series with one point, this many ticks from the start
    return decode_payload(Bytes{1, 1, 0, 3, 1, 0, 0, 0, 7, 1, static_cast<std::uint8_t>(2 * gap), 0, 0});
  };
  const auto last = with_gap(3);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->ticks, std::vector<std::uint32_t>{2});
  for (const std::uint8_t gap : {std::uint8_t{4}, std::uint8_t{60}}) {
    const auto behind = with_gap(gap);
    ASSERT_FALSE(behind) << int{gap};
    EXPECT_NE(behind.error().message.find("within the time column"), std::string::npos) << behind.error().message;
  }
}

TEST(Chunk, AFrameThatClaimsTooMuchIsNotUnpacked) {
  const auto claims = [](std::uint64_t bytes) {  // RFC 8878: magic, 8 bytes of size follow, an empty last block
    Bytes frame = {0x28, 0xb5, 0x2f, 0xfd, 0xe0};
    for (int i = 0; i < 8; ++i) frame.push_back(static_cast<std::uint8_t>(bytes >> (8 * i)));
    frame.insert(frame.end(), {1, 0, 0});
    const auto chunk = decode_chunk(frame);
    return chunk ? std::string("unpacked") : chunk.error().message;
  };
  EXPECT_EQ(claims(kMaxChunkBytes).find("are allowed"), std::string::npos);
  EXPECT_EQ(claims(kMaxChunkBytes + 1), "claims 16777217 bytes, at most 16777216 are allowed");
  EXPECT_NE(claims(UINT64_MAX / 2).find("are allowed"), std::string::npos);
}

}  // namespace
}  // namespace vramtrack

#include "fleet/remote_read.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <sstream>

#include "fleet/xor_chunk.hpp"
#include "paths.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::fleet;

std::string file(const std::string& name) {
  std::ifstream in(tests_dir() + "/fixtures/fleet/" + name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Got {
  std::vector<std::pair<Labels, std::vector<Point>>> series;
  SeriesSink sink = [this](const Labels& labels, const std::vector<Point>& points) {
    series.emplace_back(labels, points);
  };
};

const Query kAll{{}, INT64_MIN, INT64_MAX};

/// "metric gpu time_ms value", one line per sample, as returned by the server's other API (/api/v1/query).
std::string lines_of(const Got& got) {
  std::ostringstream out;
  for (const auto& [labels, points] : got.series)
    for (const Point& p : points) {
      out << value_of(labels, "__name__") << ' ' << value_of(labels, "gpu") << ' ' << p.time_ms << ' ';
      if (std::isnan(p.value))
        out << "NaN\n";
      else
        out << p.value << '\n';
    }
  return out.str();
}

TEST(RemoteRead, AnAnswerOfPrometheusIsWhatItsOtherApiSays) {
  Got got;
  ChunkedAnswer answer(kAll, got.sink);
  ASSERT_TRUE(answer.take(file("prometheus_2.42.chunks")));
  ASSERT_TRUE(answer.end());
  EXPECT_EQ(lines_of(got), file("prometheus_2.42.txt"));
}

TEST(RemoteRead, TheBytesMayComeInAnyPieces) {
  const std::string bytes = file("prometheus_2.42.chunks");
  for (const std::size_t piece : {1UL, 7UL, 1000UL}) {
    Got got;
    ChunkedAnswer answer(kAll, got.sink);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      ASSERT_TRUE(answer.take(std::string_view(bytes).substr(at, piece)));
    ASSERT_TRUE(answer.end());
    EXPECT_EQ(lines_of(got), file("prometheus_2.42.txt"));
  }
}

TEST(RemoteRead, OneWrongBitIsAnError) {
  const std::string whole = file("prometheus_2.42.chunks");
  for (std::size_t at = 0; at < whole.size(); at += 13) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Got got;
    ChunkedAnswer answer(kAll, got.sink);
    const Status taken = answer.take(damaged);
    EXPECT_FALSE(taken && answer.end()) << "byte " << at;
  }
}

TEST(RemoteRead, AnAnswerThatBreaksOffIsAnError) {
  const std::string whole = file("prometheus_2.42.chunks");
  Got got;
  ChunkedAnswer answer(kAll, got.sink);
  ASSERT_TRUE(answer.take(std::string_view(whole).substr(0, whole.size() - 1)));
  ASSERT_FALSE(answer.end());
  EXPECT_NE(answer.end().error().message.find("ends within a frame"), std::string::npos);
}

TEST(RemoteRead, SamplesOutsideTheQueryAreCutOff) {
  Got got;
  ChunkedAnswer all(kAll, got.sink);
  ASSERT_TRUE(all.take(file("prometheus_2.42.chunks")));
  const std::int64_t from = got.series[0].second[10].time_ms, until = got.series[0].second[20].time_ms;
  Got some;
  ChunkedAnswer part({{}, from, until}, some.sink);
  ASSERT_TRUE(part.take(file("prometheus_2.42.chunks")));
  ASSERT_EQ(some.series[0].second.size(), 11U);
  EXPECT_EQ(some.series[0].second.front().time_ms, from);
  EXPECT_EQ(some.series[0].second.back().time_ms, until);
}

TEST(RemoteRead, TheOtherFormOfAnswerHoldsTheSame) {
  Got got;
  ASSERT_TRUE(read_sampled_answer(file("prometheus_2.42.samples"), kAll, got.sink));
  EXPECT_EQ(lines_of(got), file("prometheus_2.42.txt"));
  EXPECT_FALSE(read_sampled_answer("no snappy at all", kAll, got.sink));
}

/// Writes the bits of a chunk by hand, so that the decoder is not tested with its own inverse.
class Bits {
 public:
  Bits& put(std::uint64_t value, unsigned count) {
    for (unsigned i = count; i-- > 0;) {
      if (used_ % 8 == 0) bytes_.push_back('\0');
      if ((value >> i & 1) != 0) bytes_.back() = static_cast<char>(bytes_.back() | 0x80 >> used_ % 8);
      ++used_;
    }
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  unsigned used_ = 0;
};

std::uint64_t bits(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

TEST(XorChunk, EveryLengthOfStepsAndValues) {
  Bits chunk;
  chunk.put(7, 16).put(0xd0, 8).put(0x0f, 8).put(bits(2), 64);  // 7 samples; time 1000 as a zigzag varint: 2000
  chunk.put(0x88, 8).put(0x27, 8).put(0, 1);                    // step 5000; the same value
  chunk.put(0, 1);                                              // the same step
  // 2 XOR 3 has bit 51 alone: 12 zeros before it, 1 bit.
  chunk.put(3, 2).put(12, 5).put(1, 6).put(1, 1);
  chunk.put(2, 2).put(8192, 14).put(2, 2).put(1, 1);                   // +8192 of 14 bits; the same window: 2 again
  chunk.put(6, 3).put((1U << 17) - 65'535, 17).put(0, 1);              // -65535 of 17 bits
  chunk.put(14, 4).put(1U << 19, 20).put(0, 1);                        // +524288 of 20 bits
  chunk.put(15, 4).put(static_cast<std::uint64_t>(-1'000'000), 64);    // 64 bits
  chunk.put(3, 2).put(0, 5).put(0, 6).put(bits(2) ^ bits(-7.25), 64);  // 0 means 64 bits
  std::vector<Point> out;
  ASSERT_TRUE(decode_xor_chunk(chunk.bytes(), out));
  const std::vector<std::pair<std::int64_t, double>> expected = {{1000, 2},   {6000, 2},    {11000, 3},      {24192, 2},
                                                                 {-28151, 2}, {443'794, 2}, {-84'261, -7.25}};
  ASSERT_EQ(out.size(), expected.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i].time_ms, expected[i].first) << i;
    EXPECT_EQ(out[i].value, expected[i].second) << i;
  }
}

TEST(XorChunk, EveryShorterChunkIsAnError) {
  Bits chunk;
  chunk.put(3, 16).put(0, 8).put(bits(1), 64).put(1, 8).put(0, 1).put(0, 1).put(0, 6);
  std::vector<Point> out;
  ASSERT_TRUE(decode_xor_chunk(chunk.bytes(), out));
  for (std::size_t size = 0; size + 1 < chunk.bytes().size(); ++size) {
    out.clear();
    EXPECT_FALSE(decode_xor_chunk(std::string_view(chunk.bytes()).substr(0, size), out)) << size;
  }
}

}  // namespace

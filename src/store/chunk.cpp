#include "store/chunk.hpp"

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <bit>
#include <new>
#include <numeric>

namespace vramtrack {
namespace {

constexpr std::uint8_t kFormat = 1;
constexpr std::array<std::int64_t, 4> kUnitsNs = {1, 1'000, 1'000'000, 1'000'000'000};

/// The largest unit that divides all times: most clocks deliver milliseconds or seconds.
std::uint8_t time_unit(const std::vector<std::int64_t>& times_ns) {
  std::uint8_t unit = 3;
  for (const std::int64_t t : times_ns)
    while (unit > 0 && t % kUnitsNs[unit] != 0) --unit;
  return unit;
}

void put_times(Bytes& out, const std::vector<std::int64_t>& times_ns, std::int64_t unit_ns) {
  std::uint64_t last = 0, last_step = 0;
  for (std::size_t i = 0; i < times_ns.size(); ++i) {
    const auto now = static_cast<std::uint64_t>(times_ns[i] / unit_ns);
    const std::uint64_t step = now - last;
    put_varint(out, zigzag(step - last_step));
    last_step = i == 0 ? 0 : step;  // the first "step" is the whole time since 1970: no prediction of the second
    last = now;
  }
}

tl::unexpected<Error> broken(const ByteReader& in, std::string_view expected) {
  return fail(fmt::format("at byte {} of the unpacked chunk: expected {}", in.offset(), expected));
}

/// Reads the ticks of one series: all of them, or gaps. False if they do not match the time column.
bool read_ticks(ByteReader& in, std::size_t count, std::size_t all, std::vector<std::uint32_t>& ticks) {
  if (count == all) {
    for (std::size_t i = 0; i < all; ++i) ticks.push_back(static_cast<std::uint32_t>(i));
    return true;
  }
  std::uint64_t gap = 0, next = 0;  // next: one past the last tick read
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = in.varint();
    if (!code) return false;
    gap += unzigzag(*code);
    if (gap == 0 || gap > all - next) return false;
    next += gap;
    ticks.push_back(static_cast<std::uint32_t>(next - 1));
  }
  return true;
}

bool read_column(ByteReader& in, std::size_t count, std::vector<std::uint64_t>& values) {
  const auto shift = in.byte();
  if (!shift || *shift > 63) return false;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = in.varint();
    if (!code) return false;
    value += unzigzag(*code);
    values.push_back(value << *shift);
  }
  return true;
}

}  // namespace

Result<Chunk> decode_payload(std::span<const std::uint8_t> payload) {
  ByteReader in(payload);
  Chunk chunk;
  const auto format = in.byte();
  if (!format || *format != kFormat)
    return fail(fmt::format("chunk format {}, this vramtrack knows {}", format ? int{*format} : -1, int{kFormat}));
  const auto columns = in.byte();
  if (!columns || *columns == 0 || *columns > kMaxColumns) return broken(in, "1 to 4 columns");
  chunk.columns = *columns;
  const auto unit = in.byte();
  if (!unit || *unit >= kUnitsNs.size()) return broken(in, "a time unit 0 to 3");
  const auto ticks = in.varint();
  const auto series = in.varint();
  // Each tick and each point takes at least one byte, so no count may exceed what is left.
  if (!ticks || !series || *ticks == 0 || *ticks > in.left() || *series == 0 || *series > in.left())
    return broken(in, "counts of ticks and series that the chunk can hold");
  chunk.times_ns.reserve(*ticks);
  std::uint64_t time = 0, step = 0;
  for (std::uint64_t i = 0; i < *ticks; ++i) {
    const auto code = in.varint();
    if (!code) return broken(in, "a time");
    const std::uint64_t change = unzigzag(*code);
    step = i == 1 ? change : step + change;
    time += step;
    chunk.times_ns.push_back(static_cast<std::int64_t>(time * static_cast<std::uint64_t>(kUnitsNs[*unit])));
  }
  chunk.series.reserve(*series);
  std::uint64_t id = 0;
  for (std::uint64_t s = 0; s < *series; ++s) {
    const auto id_step = in.varint();
    if (!id_step || (s > 0 && *id_step == 0) || *id_step > UINT32_MAX - id) return broken(in, "an ascending series id");
    id += *id_step;
    const auto count = in.varint();
    if (!count || *count == 0 || *count > *ticks || *count > in.left()) return broken(in, "a count of points");
    const auto first = static_cast<std::uint32_t>(chunk.ticks.size());
    chunk.series.push_back({static_cast<std::uint32_t>(id), first, static_cast<std::uint32_t>(*count)});
    if (!read_ticks(in, *count, *ticks, chunk.ticks)) return broken(in, "ascending ticks within the time column");
    for (unsigned c = 0; c < chunk.columns; ++c)
      if (!read_column(in, *count, chunk.values)) return broken(in, "a column of values");
  }
  if (in.left() != 0) return broken(in, "the end");
  return chunk;
}

Result<Chunk> decode_chunk(std::span<const std::uint8_t> data) {
  const unsigned long long size = ZSTD_getFrameContentSize(data.data(), data.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return fail("not a zstd frame that states its size");
  if (size > kMaxChunkBytes) return fail(fmt::format("claims {} bytes, at most {} are allowed", size, kMaxChunkBytes));
  // One more than claimed: even a frame of 0 bytes needs a buffer to be unpacked into.
  Bytes payload(static_cast<std::size_t>(size) + 1);
  const std::size_t got = ZSTD_decompress(payload.data(), payload.size() - 1, data.data(), data.size());
  // This is not damage: a reader that treated it as damage would throw the row away.
  if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation) throw std::bad_alloc();
  if (ZSTD_isError(got)) return fail(fmt::format("zstd: {}", ZSTD_getErrorName(got)));
  if (got != size) return fail(fmt::format("unpacks to {} bytes, its frame claims {}", got, size));
  return decode_payload({payload.data(), got});
}

ChunkBuilder::Lane& ChunkBuilder::lane_of(std::uint32_t series) {
  if (next_lane_ >= lanes_.size() || lanes_[next_lane_].id != series) {
    const auto [it, added] = lane_index_.try_emplace(series, lanes_.size());
    if (added) {
      if (spare_.empty()) {
        lanes_.emplace_back();
      } else {
        lanes_.push_back(std::move(spare_.back()));
        spare_.pop_back();
      }
      lanes_.back().id = series;
    }
    next_lane_ = it->second;
  }
  return lanes_[next_lane_++];
}

void ChunkBuilder::add(std::int64_t time_ns, std::uint32_t series, std::span<const std::uint64_t> values) {
  if (times_ns_.empty()) {
    min_ns_ = max_ns_ = time_ns;
  } else if (next_lane_ == lanes_.size() && times_ns_.back() != time_ns) {
    next_lane_ = 0;
  }
  Lane& lane = lane_of(series);
  const bool met_this_tick = lane.count > 0 && !times_ns_.empty() && lane.last_tick + 1 == times_ns_.size();
  if (times_ns_.empty() || times_ns_.back() != time_ns || met_this_tick) {
    times_ns_.push_back(time_ns);
    min_ns_ = std::min(min_ns_, time_ns);
    max_ns_ = std::max(max_ns_, time_ns);
    encoded_bytes_ += sizeof(std::int64_t);
  }
  const auto tick = static_cast<std::uint32_t>(times_ns_.size() - 1);
  const std::size_t before = lane.ticks.size();
  if (!lane.sparse && tick != lane.count) {
    lane.sparse = true;
    for (std::uint32_t i = 0; i < lane.count; ++i) put_varint(lane.ticks, i == 0 ? zigzag(1) : 0);
    lane.last_gap = lane.count == 0 ? 0 : 1;
  }
  if (lane.sparse) {
    const std::uint64_t gap = lane.count == 0 ? std::uint64_t{tick} + 1 : tick - lane.last_tick;
    put_varint(lane.ticks, zigzag(gap - lane.last_gap));
    lane.last_gap = gap;
  }
  encoded_bytes_ += lane.ticks.size() - before;
  lane.last_tick = tick;
  ++lane.count;
  ++points_;
  for (unsigned c = 0; c < columns_; ++c) {
    Column& column = lane.columns[c];
    const std::size_t size = column.deltas.size();
    put_varint(column.deltas, zigzag(values[c] - column.last));
    column.last = values[c];
    column.bits |= values[c];
    encoded_bytes_ += column.deltas.size() - size;
  }
}

Bytes ChunkBuilder::payload() const {
  Bytes out;
  out.reserve(encoded_bytes_ / 2 + 64);
  const std::uint8_t unit = time_unit(times_ns_);
  out.push_back(kFormat);
  out.push_back(static_cast<std::uint8_t>(columns_));
  out.push_back(unit);
  put_varint(out, times_ns_.size());
  put_varint(out, lanes_.size());
  put_times(out, times_ns_, kUnitsNs[unit]);

  std::vector<std::size_t> order(lanes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) { return lanes_[a].id < lanes_[b].id; });
  std::uint32_t last_id = 0;
  for (const std::size_t l : order) {
    const Lane& lane = lanes_[l];
    put_varint(out, lane.id - last_id);
    last_id = lane.id;
    put_varint(out, lane.count);
    if (lane.count != times_ns_.size()) {
      if (lane.sparse) {
        out.insert(out.end(), lane.ticks.begin(), lane.ticks.end());
      } else {  // it was in every tick until it ended
        for (std::uint32_t i = 0; i < lane.count; ++i) put_varint(out, i == 0 ? zigzag(1) : 0);
      }
    }
    for (unsigned c = 0; c < columns_; ++c) {
      const Column& column = lane.columns[c];
      const unsigned shift = column.bits == 0 ? 0 : static_cast<unsigned>(std::countr_zero(column.bits));
      out.push_back(static_cast<std::uint8_t>(shift));
      ByteReader in(column.deltas);
      std::uint64_t value = 0, last = 0;
      for (std::uint32_t i = 0; i < lane.count; ++i) {
        value += unzigzag(*in.varint());
        put_varint(out, zigzag((value >> shift) - last));
        last = value >> shift;
      }
    }
  }
  return out;
}

void ChunkBuilder::clear() {
  for (Lane& lane : lanes_) {
    lane.count = lane.last_tick = 0;
    lane.last_gap = 0;
    lane.sparse = false;
    lane.ticks.clear();
    for (Column& column : lane.columns) {
      column.deltas.clear();
      column.last = column.bits = 0;
    }
    spare_.push_back(std::move(lane));
  }
  lanes_.clear();
  lane_index_.clear();
  times_ns_.clear();
  next_lane_ = points_ = encoded_bytes_ = 0;
  min_ns_ = max_ns_ = 0;
}

Compressor::Compressor() = default;
Compressor::~Compressor() {
  release();
}

void Compressor::release() {
  ZSTD_freeCCtx(context_);
  context_ = nullptr;
}

Result<Bytes> Compressor::compress(const Bytes& payload, int level) {
  if (!context_) context_ = ZSTD_createCCtx();
  if (!context_) return fail("zstd: out of memory");
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  // Small tables: columns of deltas find matches in their neighbours, so larger tables gain only a few per cent of size
  // and cost more memory than everything else in the store (measured by bench/store_bench).
  ZSTD_CCtx_setParameter(context_, ZSTD_c_windowLog, 16);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_hashLog, 12);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_chainLog, 12);
  Bytes out(ZSTD_compressBound(payload.size()));
  const std::size_t size = ZSTD_compress2(context_, out.data(), out.size(), payload.data(), payload.size());
  if (ZSTD_isError(size)) return fail(std::string("zstd: ") + ZSTD_getErrorName(size));
  out.resize(size);
  out.shrink_to_fit();
  return out;
}

}  // namespace vramtrack

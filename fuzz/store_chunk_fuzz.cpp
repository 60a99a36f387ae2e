// A store's chunk from any bytes: the decoder must answer with a chunk or an error, within its memory bound. The first
// byte chooses: even, the rest is a compressed chunk as it lies in the file; odd, an unpacked payload, for the zstd
// checksum keeps nearly all mutations of the former from the decoder.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "store/chunk.hpp"
#include "store/rollup.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  const auto chunk = data[0] % 2 == 0 ? decode_chunk(bytes) : decode_payload(bytes);
  if (!chunk) {
    if (chunk.error().message.empty()) std::abort();
    return 0;
  }
  // What decodes is consistent, may be rolled up, and returns from a second packing as it was.
  ChunkBuilder builder(chunk->columns);
  RollupTable rollups(60'000'000'000);
  if (rollups.add(*chunk)) {
    ChunkBuilder merged(RollupTable::kColumns);
    put_cells(rollups.cells(), merged);
    if (!merged.empty() && !decode_payload(merged.payload())) std::abort();
  }
  std::size_t points = 0;
  for (const Chunk::Series& series : chunk->series) points += series.count;
  if (points != chunk->points() || chunk->values.size() != points * chunk->columns) std::abort();
  for (const Chunk::Series& series : chunk->series)
    for (std::uint32_t i = 0; i < series.count; ++i) {
      const std::uint32_t tick = chunk->ticks[series.first + i];
      if (tick >= chunk->times_ns.size()) std::abort();
      std::uint64_t values[kMaxColumns];
      for (unsigned c = 0; c < chunk->columns; ++c) values[c] = chunk->value(series, i, c);
      builder.add(chunk->times_ns[tick], series.id, {values, chunk->columns});
    }
  const auto again = decode_payload(builder.payload());
  if (!again || again->values != chunk->values) std::abort();
  return 0;
}

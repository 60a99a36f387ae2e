// The chunks in which Prometheus stores samples, as remote read streams them: "XOR" in tsdb/docs/format/chunks.md,
// after Pelkonen et al., "Gorilla: A Fast, Scalable, In-Memory Time Series Database", VLDB 2015.
#pragma once

#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "fleet/packed.hpp"

namespace vramtrack::fleet {

/// Appends the samples of `chunk` to `out`, with any values: NaN marks a series that ended. An error states where the
/// bytes end too early; samples decoded before it are kept. Pure; about 15 ns per sample.
Status decode_xor_chunk(std::string_view chunk, std::vector<Point>& out);

}  // namespace vramtrack::fleet

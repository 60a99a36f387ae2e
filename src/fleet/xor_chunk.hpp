// The chunks in which Prometheus keeps samples, as remote read streams them: "XOR" of tsdb/docs/format/chunks.md, after
// Pelkonen et al., "Gorilla: A Fast, Scalable, In-Memory Time Series Database", VLDB 2015.
#pragma once

#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "fleet/packed.hpp"

namespace vramtrack::fleet {

/// Appends the samples of `chunk` to `out`, whatever their values: NaN marks a series that ended. An error says where
/// the bytes end too early; what was decoded before it stays. Pure; about 15 ns a sample.
Status decode_xor_chunk(std::string_view chunk, std::vector<Point>& out);

}  // namespace vramtrack::fleet

// Loads series into a server by remote-write, as Prometheus itself sends them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace vramtrack::bench {

struct WrittenSeries {
  std::vector<std::pair<std::string, std::string>> labels;  ///< sorted by name, "__name__" among them
  std::int64_t first_ms = 0;
  std::vector<double> values;  ///< one a step; NaN: none at that step
};

/// Writes all series, an hour at a time, as a server takes them in order. Throws std::runtime_error with the server's
/// words.
void write_series(const std::string& host, int port, const std::vector<WrittenSeries>& series, std::int64_t step_ms);

}  // namespace vramtrack::bench

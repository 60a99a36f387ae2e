// The requirements on accuracy, each with its figure, in one table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "beside.hpp"
#include "forecast.hpp"
#include "tables.hpp"

namespace vramtrack::accuracy {

/// Everything that was played; what is empty was not asked for, and its requirements get a dash.
struct Everything {
  std::vector<Run> first;       ///< first runs ever of generated programs, and own recordings
  std::vector<Run> recordings;  ///< of others, with and without leaks added
  std::vector<Beside> beside;
  std::vector<Ranks> ranks;
  std::vector<Run> parts;
  std::vector<Run> parts_total;
  std::vector<Run> crash;
  std::vector<Run> ends;
  std::optional<ForecastFigures> forecast;
};

/// Empty where nothing that is required was played.
std::string must_show_table(const Everything& all);

}  // namespace vramtrack::accuracy

// The JSON lines: docs/formats/analysis.md is their contract.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/program.hpp"
#include "core/sample.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// One line, vramtrack.alert.v1: what happened to `alert` of `series`. Ends with a newline.
std::string alert_json(const View& view, const SeriesView& series, const Alert& alert, AlertNews news);

/// A GPU's free memory, compared with a program's peak need.
struct RoomOnDevice {
  std::string id;
  std::optional<int> index;
  double free_bytes = 0;
  double short_bytes = 0;  ///< 0: there is enough
};

/// One line, vramtrack.program.v1: what is remembered about a program. Ends with a newline. `traced_bytes`: the peaks
/// of its runs in traces of the probe. `room`: nullopt if nothing was compared.
std::string program_json(const Program& program, const std::vector<double>& traced_bytes = {},
                         const std::optional<std::vector<RoomOnDevice>>& room = {});

/// One line, vramtrack.event.v1: something that is not a measurement (a lost device, an XID).
std::string event_json(const Event& event, bool clock_is_relative);

}  // namespace vramtrack

// The JSON lines: docs/formats/analysis.md is their contract.
#pragma once

#include <string>

#include "core/program.hpp"
#include "core/sample.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// One line, vramtrack.alert.v1: what happened to `alert` of `series`. Ends with a newline.
std::string alert_json(const View& view, const SeriesView& series, const Alert& alert, AlertNews news);

/// One line, vramtrack.program.v1: what is remembered about a program. Ends with a newline.
/// `traced_bytes`: the peaks of its runs in traces of the probe.
std::string program_json(const Program& program, const std::vector<double>& traced_bytes = {});

/// One line, vramtrack.event.v1: something that is not a measurement (a lost device, an XID).
std::string event_json(const Event& event, bool clock_is_relative);

}  // namespace vramtrack

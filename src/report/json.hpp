// The JSON lines: docs/formats/analysis.md is their contract.
#pragma once

#include <string>

#include "report/view.hpp"

namespace vramtrack {

/// One line, vramtrack.alert.v1: `alert` of `series` was raised, or cleared. Ends with a newline.
/// `start` is the first sample of the watch or recording.
std::string alert_json(const View& view, const SeriesView& series, const Alert& alert, bool raised);

}  // namespace vramtrack

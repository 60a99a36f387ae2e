// The output of a running watch: the table from time to time, and a line at every alert.
#pragma once

#include <string>

#include "report/report.hpp"

namespace vramtrack {

/// The table: a line per device, with its processes below it, growing ones first; at most `processes` steady ones per
/// device, the rest summarised in one line. If `style` has a width, every line fits: names are shortened first, the
/// verdict and the time to out-of-memory last. Ends with a newline. Cost: O(series).
std::string status_table(const View& view, const ReportStyle& style, std::size_t processes = 4);

/// Raised: what leaks, how fast, until when, why, and what to do next. Escalated: the new severity. Cleared: how it
/// ended. Ends with a newline.
std::string alert_lines(const View& view, const SeriesView& series, const Alert& alert, AlertNews news,
                        const ReportStyle& style);

}  // namespace vramtrack

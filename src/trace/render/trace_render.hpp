// The report of a trace as text for a terminal and as JSON (docs/trace.md). Pure: the same input gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "trace/trace_report.hpp"

namespace vramtrack::trace {

/// The verdict, then the sites, then further information.
std::string trace_report_text(const TraceReport& report, const ProbeNames& names, std::size_t sites);
/// "vramtrack.trace_report.v1"
std::string trace_report_json(const TraceReport& report, const ProbeNames& names);

/// One text line for each line of code that holds or grows the most.
std::string trace_top_text(const TraceReport& report, const ProbeNames& names, std::size_t sites);

/// The change of held memory by line, the most growth first.
std::string trace_diff_text(const Profile& change, const ProbeNames& names, std::string_view from, std::string_view to,
                            std::size_t sites);
/// "vramtrack.trace_diff.v1"
std::string trace_diff_json(const Profile& change, const ProbeNames& names, std::string_view from, std::string_view to);

}  // namespace vramtrack::trace

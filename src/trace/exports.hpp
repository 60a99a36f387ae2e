// Writes profiles and events in the formats of other tools. Each function is pure: it turns a profile into the file's
// bytes; events go through a sink, because there may be many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "trace/profile.hpp"
#include "trace/snapshot.hpp"

namespace vramtrack::trace {

/// Lines "outermost;...;innermost bytes" for flamegraph.pl, speedscope, inferno. ';' in a name becomes ':'.
std::string folded(const Profile& profile, const Symbols& symbols);

/// One sampled profile in bytes, for https://www.speedscope.app/file-format-schema.json.
std::string speedscope(const Profile& profile, const Symbols& symbols, std::string_view name);

/// A gzipped profile.proto (github.com/google/pprof) with inuse_objects and inuse_space, as in Go's heap profiles.
/// Errors: no memory to compress.
Result<std::string> pprof(const Profile& profile, const Symbols& symbols);

/// Receives the text piece by piece; returning false ends the export.
using Sink = std::function<bool(std::string_view)>;

/// Chrome's trace-event JSON (chrome://tracing, ui.perfetto.dev): live, pending and reserved bytes as counters,
/// segments and ooms as instants, annotations as spans. Without times (PyTorch before 2.2), the event's number is used
/// as microseconds.
void chrome_trace(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device, const Sink& sink);

/// One line per event: device,event,time_us,action,address,size_bytes,stream,device_free_bytes,live_bytes,
/// pending_bytes,reserved_bytes,site. Fields that the recording lacks are empty.
void events_csv(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device, const Sink& sink);

/// One self-contained HTML page: an icicle graph of the profile with zoom on click and search; it loads nothing. Frames
/// narrower than 1/2000 of the whole are merged into "(smaller ones)". Its table is grouped by `line_of`.
std::string flamegraph_html(const Profile& profile, const Symbols& symbols, const LineOf& line_of,
                            std::string_view title, std::string_view subtitle);
/// The same, grouped by site_of().
std::string flamegraph_html(const Profile& profile, const Symbols& symbols, std::string_view title,
                            std::string_view subtitle);

}  // namespace vramtrack::trace

// Defines what a format of allocation traces is, and reads a trace of any format. A format is one file that defines a
// `const TraceFormatInfo <name>_trace_format`, one line in formats.def, a page in docs/formats/ and a fuzz target.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_input.hpp"
#include "core/result.hpp"
#include "trace/diff.hpp"
#include "trace/event_stream.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"
#include "trace/timeline.hpp"

namespace vramtrack::trace {

/// A registered format. It is read as a snapshot (final blocks, and perhaps the events before), or as a plain stream of
/// events: exactly one of `read` and `stream` is set.
struct TraceFormatInfo {
  std::string_view name;  ///< such as "torch-snapshot"
  std::string_view help;  ///< the tool that records it
  /// The certainty up to 100; 0: not this format. `head` is the decompressed beginning, at most kHeadBytes; `name` is
  /// that of the file. The highest wins; on a tie, the earlier one in formats.def.
  int (*recognise)(std::string_view head, std::string_view name);
  Result<Snapshot> (*read)(ByteInput input, Symbols& symbols, const ReadOptions& options);
  Status (*stream)(ByteInput input, Symbols& symbols, const EventVisit& visit);
  /// For `read`: unless is_heap_profile is set, the snapshot has all events from the beginning, so replay_events()
  /// shows what grew within one file.
  bool has_all_events = false;
};
inline constexpr std::size_t kHeadBytes = 4096;
/// A format that is this certain of a file can be suggested to a user who passed the file to another command.
inline constexpr int kSure = 80;

/// The registered formats in the order of formats.def.
std::span<const TraceFormatInfo* const> trace_formats();
/// Formats read by higher modules, which need libraries that the Python extension does not link.
using MoreFormats = std::span<const TraceFormatInfo* const>;
/// The format of the file; nullptr if none is at least as certain as `least`.
const TraceFormatInfo* recognise_trace(std::string_view head, std::string_view name, int least = 1,
                                       MoreFormats more = {});
/// The same for a file; nullptr even if it cannot be read. Standard input and pipes are not read from,
/// because their bytes can be read only once.
const TraceFormatInfo* recognise_trace_file(const std::string& path, int least = 1);

// The functions below report out of memory as an Error; none of them throws.

/// An input with a known format.
struct TraceInput {
  const TraceFormatInfo* format = nullptr;
  ByteInput bytes;
};
/// Opens a regular file or a pipe ("-" for standard input), plain, gzip or zstd; or bytes that must outlive it, where
/// `name` stands for the file in errors.
Result<TraceInput> open_trace(const std::string& path, MoreFormats more = {});
Result<TraceInput> open_trace(std::span<const std::uint8_t> bytes, std::string name, MoreFormats more = {});

/// Reads a trace of any format. For a stream, the snapshot has the blocks that were live at its end, each in its own
/// segment. It takes memory for the live blocks and the names, and 32 bytes per event if events are kept.
Result<Snapshot> read_trace(TraceInput input, Symbols& symbols, const ReadOptions& options = {});

/// REQUIRES: format->stream. The devices of a stream in order, each replayed while it is read; see StreamReplay for the
/// memory needed. Errors name file and line.
Result<std::vector<StreamReplay>> replay_stream(TraceInput input, Symbols& symbols, const TimelineOptions& options);

}  // namespace vramtrack::trace

// What a format of allocation traces is, and how a trace of any of them is read. A format is one file that defines a
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

/// A registered format. It is read as a snapshot (final blocks, and perhaps what led there), or as a plain stream of
/// events: exactly one of `read` and `stream` is set.
struct TraceFormatInfo {
  std::string_view name;  ///< "torch-snapshot"
  std::string_view help;  ///< what records it
  /// 0: not this format; else how certain, up to 100. `head` is the beginning, decompressed, at most kHeadBytes; `name`
  /// is the file's. The highest wins; on a tie, the earlier one in formats.def.
  int (*recognise)(std::string_view head, std::string_view name);
  Result<Snapshot> (*read)(ByteInput input, Symbols& symbols, const ReadOptions& options);
  Status (*stream)(ByteInput input, Symbols& symbols, const EventVisit& visit);
  /// Of `read`: unless is_heap_profile is set, the snapshot has all events from the beginning, so that replay_events()
  /// shows what grew within one file.
  bool has_all_events = false;
};
inline constexpr std::size_t kHeadBytes = 4096;
/// A format that is this certain of a file can be suggested to a user who passed the file to another command.
inline constexpr int kSure = 80;

/// The registered formats in the order of formats.def.
std::span<const TraceFormatInfo* const> trace_formats();
/// Formats that are read by modules above this one, which need more than the Python extension links.
using MoreFormats = std::span<const TraceFormatInfo* const>;
/// nullptr if none is as certain as `least`.
const TraceFormatInfo* recognise_trace(std::string_view head, std::string_view name, int least = 1,
                                       MoreFormats more = {});
/// The same for a file; nullptr also if it cannot be read. Standard input and pipes are not read from,
/// because their bytes can be read only once.
const TraceFormatInfo* recognise_trace_file(const std::string& path, int least = 1);

// Out of memory is an Error of the functions below, and none of them throws.

/// An input whose format is known.
struct TraceInput {
  const TraceFormatInfo* format = nullptr;
  ByteInput bytes;
};
/// A regular file or a pipe, "-" for standard input, plain, gzip or zstd; or bytes that must outlive it, with `name`
/// for the file in errors.
Result<TraceInput> open_trace(const std::string& path, MoreFormats more = {});
Result<TraceInput> open_trace(std::span<const std::uint8_t> bytes, std::string name, MoreFormats more = {});

/// Reads a trace of any format. For a stream the snapshot has the blocks that were live at its end, each in a segment
/// of its own: memory is that of the live blocks and the names, and 32 bytes an event where events are kept.
Result<Snapshot> read_trace(TraceInput input, Symbols& symbols, const ReadOptions& options = {});

/// REQUIRES: format->stream. The devices of a stream in order, each replayed as it is read: see StreamReplay for the
/// memory it takes. Errors name file and line.
Result<std::vector<StreamReplay>> replay_stream(TraceInput input, Symbols& symbols, const TimelineOptions& options);

}  // namespace vramtrack::trace

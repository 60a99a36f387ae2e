// Parts shared by several of the documents of render.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_text.hpp"
#include "trace/labels.hpp"
#include "trace/live_set.hpp"
#include "trace/profile.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// [{"name", "file", "line"}, ...], innermost first.
void stack_json(JsonText& json, const Symbols& symbols, StackId stack);
/// Adds "stack", as written by stack_json(), and "labels", if there are any, to the open object.
void labelled_stack_json(JsonText& json, const Symbols& symbols, StackId stack, const Labels& labels);
/// [{"site", "bytes", "blocks", "stack", "labels"}, ...], at most `most` of them; "labels" only if there are any.
void sites_json(JsonText& json, const Symbols& symbols, const Profile& sites, std::size_t most, const Labels& labels);
/// [{"kind", "label", "bytes", "blocks"}, ...]; a pool also has its "pool_id".
void labels_json(JsonText& json, const Symbols& symbols, const std::vector<LabelBytes>& labels);
/// Adds "event", "time_us" if known, "live_bytes", "pending_bytes" and "reserved_bytes" to the open object.
void moment_json(JsonText& json, const Moment& moment);

/// The line, and the number of stacks with this site.
std::string line_words(const Symbols& symbols, const LineBytes& line);
/// From the site outwards, at most `most` informative frames.
std::vector<std::string> stack_words(const Symbols& symbols, StackId stack, std::size_t most);
/// "step 3 (5.0 MiB), step 2 (5.0 MiB) and 28 more"; empty without labels.
std::string labels_words(const Symbols& symbols, const std::vector<LabelBytes>& labels);
/// The labels of all stacks with the same site as `stack`.
std::vector<LabelBytes> labels_of_line(const Symbols& symbols, const Labels& labels, StackId stack);
/// One text line for each line of code that holds the most, and one below it for its labels; percentages are of
/// `total_bytes`.
std::string sites_text(const Symbols& symbols, const Profile& sites, std::int64_t total_bytes, std::size_t most,
                       std::string_view indent, const Labels& labels);
/// The name of the memory: "device 1", or "host" for pinned host memory.
std::string memory_name(const Snapshot& snapshot, std::uint32_t device);

/// The number of a trace's entry as people count, from 1: "1,234".
std::string entry_words(const Moment& moment);
/// The time after `first_us`, "+1.234 s", or "entry 1,234" if the trace has no times.
std::string moment_words(const Moment& moment, std::int64_t first_us);

}  // namespace vramtrack::trace

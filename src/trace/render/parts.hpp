// What several of the documents of render.hpp have in common.
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
/// "stack" as stack_json() writes it, and "labels" where there are any, of the object that is open.
void labelled_stack_json(JsonText& json, const Symbols& symbols, StackId stack, const Labels& labels);
/// [{"site", "bytes", "blocks", "stack", "labels"}, ...], at most `most` of them; "labels" where there are any.
void sites_json(JsonText& json, const Symbols& symbols, const Profile& sites, std::size_t most, const Labels& labels);
/// [{"kind", "label", "bytes", "blocks"}, ...]; a pool also has its "pool_id".
void labels_json(JsonText& json, const Symbols& symbols, const std::vector<LabelBytes>& labels);
/// "event", "time_us" where known, "live_bytes", "pending_bytes", "reserved_bytes" of the object that is open.
void moment_json(JsonText& json, const Moment& moment);

/// The line, and of how many stacks it is the site.
std::string line_words(const Symbols& symbols, const LineBytes& line);
/// From the site outwards, at most `most` informative frames.
std::vector<std::string> stack_words(const Symbols& symbols, StackId stack, std::size_t most);
/// "step 3 (5.0 MiB), step 2 (5.0 MiB) and 28 more"; empty without labels.
std::string labels_words(const Symbols& symbols, const std::vector<LabelBytes>& labels);
/// The labels of all stacks whose site is that of `stack`.
std::vector<LabelBytes> labels_of_line(const Symbols& symbols, const Labels& labels, StackId stack);
/// A line each for the lines of code that hold most, and one below it for its labels; `total_bytes` is what the
/// percentages are of.
std::string sites_text(const Symbols& symbols, const Profile& sites, std::int64_t total_bytes, std::size_t most,
                       std::string_view indent, const Labels& labels);
/// "device 1", "host" for pinned host memory.
std::string memory_name(const Snapshot& snapshot, std::uint32_t device);

/// "1,234": the number of a trace's entry as people count, from 1.
std::string entry_words(const Moment& moment);
/// "+1.234 s" after `first_us`, or "entry 1,234" where the trace has no times.
std::string moment_words(const Moment& moment, std::int64_t first_us);

}  // namespace vramtrack::trace

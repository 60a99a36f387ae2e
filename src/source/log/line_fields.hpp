// The parts of a line that may say which machine, program or thread wrote it. Private to the reader of free text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// "host=node7", "\"worker\": 3", "TP0", "worker-42", "[4101]".
struct LineField {
  /// The same for lines of one kind: "host=", "tp#" for a name with a number, "[1" for what the first brackets hold.
  std::string name;
  std::string_view value;  ///< in the line
};

/// Finds them in `line`; those with a key only if the key is one for machines, programs, jobs or threads. O(bytes).
void cut_fields(std::string_view line, std::vector<LineField>& fields);

/// The value of the first field `name` of `line`; empty: it has none.
std::string_view field_of(std::string_view line, std::string_view name);

/// The part of a regular expression that finds such a field, with its value in a group gpu.
std::string field_pattern(const LineField& field);

}  // namespace vramtrack

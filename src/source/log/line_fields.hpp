// The parts of a line that may identify the machine, program or thread that wrote it. Private to the text reader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// "host=node7", "\"worker\": 3", "TP0", "worker-42", "[4101]".
struct LineField {
  /// Equal for lines of one kind: "host=", "tp#" for a name with a number, "[1" for the contents of the first brackets.
  std::string name;
  std::string_view value;  ///< in the line
};

/// Finds them in `line`; fields with a key only if the key names machines, programs, jobs or threads. O(bytes).
void cut_fields(std::string_view line, std::vector<LineField>& fields);

/// The value of the first field `name` of `line`; empty if it has none.
std::string_view field_of(std::string_view line, std::string_view name);

/// The part of a regular expression that matches such a field, with its value in a group gpu.
std::string field_pattern(const LineField& field);

}  // namespace vramtrack

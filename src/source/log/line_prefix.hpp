// The text that a logger puts before each line of another program's output: "> ", "pod-0 | ", "2024-05-01T23:50:00.123Z
// stdout F ". It is removed first, because tools' screens are recognised by how their lines begin. Also the parts of a
// line that may identify the machine, program or thread that wrote it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// A prefix of nearly all lines of a log, in consecutive parts. Pure, and cheap to copy.
class LinePrefix {
 public:
  /// The prefix of the lines in `head`; nullopt if there is none.
  static std::optional<LinePrefix> find(std::string_view head);

  /// The time that precedes nearly all lines of `head`, including the first; nullopt if none does.
  static std::optional<LinePrefix> find_time(std::string_view head);

  /// Whether the prefix contains a date and a time of day.
  [[nodiscard]] bool has_time() const;
  /// Replaces lines that contain only the prefix with the prefix's time, for tools that print screens without a clock.
  void keep_times() { keeps_times_ = true; }

  /// Replaces the prefix with its time and a comma, so that the time is a column: "10:00:00 4000 MiB, 24576 MiB".
  void make_column() { makes_column_ = true; }

  /// `line` without the prefix; unchanged if it does not have one.
  [[nodiscard]] std::string_view strip(std::string_view line) const;
  /// The same for all lines of `text`, which may end within a line.
  [[nodiscard]] std::string strip_lines(std::string_view text) const;

  /// The prefix as written on the first line that has it.
  [[nodiscard]] const std::string& example() const { return example_; }

 private:
  struct Part {
    bool is_time = false;
    std::string text;  ///< used if the part is not a time
  };

  static std::optional<Part> find_part(const std::vector<std::string_view>& lines);
  static std::optional<std::string_view> without(const Part& part, std::string_view line);

  std::vector<Part> parts_;
  std::string example_;
  bool keeps_times_ = false;
  bool makes_column_ = false;
};

/// "host=node7", "\"worker\": 3", "TP0", "worker-42", "[4101]"; behind spaces, a value with a digit ("slot 3"), a PCI
/// address, or the name of a program ("command python").
struct LineField {
  /// Equal for lines of one kind: "host=", "slot " if spaces follow the key, "tp#" for a name with a number, "[1" for
  /// the contents of the first brackets.
  std::string name;
  std::string_view value;  ///< in the line
};

/// Which keys make a field.
enum class FieldKeys : std::uint8_t {
  of_origins,  ///< those that name machines, programs, jobs or threads
  any,         ///< others, too
};

/// Finds the fields in `line`, in order. O(bytes).
void cut_fields(std::string_view line, std::vector<LineField>& fields, FieldKeys keys);

/// The value of the first field `name` of `line`, whatever its key; empty if it has none.
std::string_view field_of(std::string_view line, std::string_view name);

/// The part of a regular expression that matches such a field, with its value in a group gpu.
std::string field_pattern(const LineField& field);

}  // namespace vramtrack

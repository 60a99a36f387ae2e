// What a logger puts before each line of another program's output: "> ", "pod-0 | ", "2024-05-01T23:50:00.123Z stdout F
// ". The screens of tools are read by where their lines begin, so it is taken off first.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// A prefix that nearly all lines of a log have, in parts that follow one another. Pure, and cheap to copy.
class LinePrefix {
 public:
  /// That of the lines in `head`; nullopt if they have none.
  static std::optional<LinePrefix> find(std::string_view head);

  /// The time that stands before nearly all lines of `head`, its first one too; nullopt if none does.
  static std::optional<LinePrefix> find_time(std::string_view head);

  /// Whether the prefix contains a date and a time of day.
  [[nodiscard]] bool has_time() const;
  /// Puts the time of the prefix in the place of lines that hold nothing else, for tools whose screens have no clock.
  void keep_times() { keeps_times_ = true; }

  /// Writes the time of the prefix and a comma in its place, so that it is a column: "10:00:00 4000 MiB, 24576 MiB".
  void make_column() { makes_column_ = true; }

  /// `line` without the prefix; as it is, if it does not have it.
  [[nodiscard]] std::string_view strip(std::string_view line) const;
  /// The same for all lines of `text`, whole ones or not.
  [[nodiscard]] std::string strip_lines(std::string_view text) const;

  /// As the first line that has it writes it.
  [[nodiscard]] const std::string& example() const { return example_; }

 private:
  struct Part {
    bool is_time = false;
    std::string text;  ///< if it is not a time
  };

  static std::optional<Part> find_part(const std::vector<std::string_view>& lines);
  static std::optional<std::string_view> without(const Part& part, std::string_view line);

  std::vector<Part> parts_;
  std::string example_;
  bool keeps_times_ = false;
  bool makes_column_ = false;
};

}  // namespace vramtrack

// --line-pattern: a regular expression with named groups that describes a line of custom text. Also the rows of tables
// in free text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/regex.hpp"
#include "core/result.hpp"

namespace vramtrack {

/// The fields of one line; those it does not mention are empty.
struct TextReading {
  std::string_view time, step, used, total, free, allocated, reserved, gpu, uuid, pid, name, user;
};

/// A pattern that matches exactly `text`.
std::string quoted_for_pattern(std::string_view text);

/// A compiled pattern with named groups, (?<used>...) or (?P<used>...): those of TextReading.
class LinePattern {
 public:
  static constexpr std::size_t kLongestLine = 4096;  ///< longer ones never match

  /// REQUIRES: a group `used`, `allocated` or `reserved`, or `free` and `total`. Errors explain what is wrong.
  static Result<LinePattern> compile(const std::string& text);

  /// Returns false if the line does not match.
  bool read(std::string_view line, TextReading& out);

  [[nodiscard]] bool has_time() const { return has_time_; }
  [[nodiscard]] bool has_step() const { return has_step_; }
  [[nodiscard]] bool has_pid() const { return has_pid_; }

 private:
  explicit LinePattern(Regex regex) : regex_(std::move(regex)) {}

  Regex regex_;
  std::vector<std::string_view TextReading::*> groups_;  ///< by group number, from 1; nullptr: unnamed
  std::vector<std::string_view> found_;
  bool has_time_ = false;
  bool has_step_ = false;
  bool has_pid_ = false;
};

/// "| 1 | 8 GiB |" below "| Epoch | Memory |" becomes "Epoch: 1, Memory: 8 GiB", and so does "1 8G" below "Epoch
/// GPU_mem". From torch.cuda.memory_summary(), the current values of allocated and reserved memory become lines, and
/// its other rows are empty. Rows of gpustat become lines. Other lines stay unchanged.
class TableRows {
 public:
  /// Valid until the next call.
  std::string_view line(std::string_view line);
  /// Whether the last line belonged to a table.
  [[nodiscard]] bool in_table() const { return in_summary_ || !titles_.empty() || in_spaced_; }

 private:
  void write_row(const std::vector<std::string>& titles);
  std::string_view gpustat_row(std::string_view line);
  std::string_view summary_row(std::string_view text);
  std::string_view spaced(std::string_view line, std::string_view text);
  bool read_spaced_titles(std::string_view text);

  std::string before_;
  bool in_summary_ = false;                 ///< inside a summary of PyTorch's allocator
  std::vector<std::string> titles_;         ///< titles of a Markdown table
  std::vector<std::string> spaced_titles_;  ///< titles of a table with spaces between them
  bool in_spaced_ = false;                  ///< the last line was one of them, or a row below them
  std::vector<std::string> cells_;
  std::string row_;
};

}  // namespace vramtrack

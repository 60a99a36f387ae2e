// --line-pattern: a regular expression with named groups that describes a line of custom text.
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

/// `text` as a pattern that matches it.
std::string quoted_for_pattern(std::string_view text);

/// A compiled pattern with named groups, (?<used>...) or (?P<used>...): those of TextReading.
class LinePattern {
 public:
  static constexpr std::size_t kLongestLine = 4096;  ///< longer ones never match

  /// REQUIRES a group `used`, `allocated` or `reserved`, or `free` and `total`. Errors explain what is wrong.
  static Result<LinePattern> compile(const std::string& text);

  /// False when the line does not match.
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

}  // namespace vramtrack

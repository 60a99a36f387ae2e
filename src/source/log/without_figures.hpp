// RowsWithoutFigures: a log that is recognised, but has nothing to judge.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "source/log/format.hpp"

namespace vramtrack {

/// Makes no samples: the log of a card that does not report its memory adds nothing next to a list of processes, which
/// has figures (recording.cpp); nor does a list in which no process was visible.
class RowsWithoutFigures final : public LogParser {
 public:
  explicit RowsWithoutFigures(std::string why, bool processes_only = false)
      : why_(std::move(why)), processes_only_(processes_only) {}

  std::uint64_t parse(std::string_view lines, std::uint64_t first_line, bool, LogRows&) override {
    return first_line + static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  }
  [[nodiscard]] bool clock_is_relative() const override { return false; }
  [[nodiscard]] bool processes_only() const override { return processes_only_; }
  /// The reason, with advice what to record instead.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::string why_;
  bool processes_only_;
};

}  // namespace vramtrack

// RowsWithoutFigures: a log of a card that does not report its memory. It is recognised, but has nothing to judge.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "source/log/format.hpp"

namespace vramtrack {

/// Makes no samples. Next to a list of processes, which does, it adds nothing (recording.cpp).
class RowsWithoutFigures final : public LogParser {
 public:
  explicit RowsWithoutFigures(std::string why) : why_(std::move(why)) {}

  std::uint64_t parse(std::string_view lines, std::uint64_t first_line, bool, LogRows&) override {
    return first_line + static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  }
  [[nodiscard]] bool clock_is_relative() const override { return false; }
  /// The reason, with advice what to record instead.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::string why_;
};

}  // namespace vramtrack

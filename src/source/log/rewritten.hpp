// A log whose lines are rewritten for the parser of another format: numbers without what stands between thousands,
// cells with tabs between them, JSON objects.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "source/log/format.hpp"

namespace vramtrack {

struct Rewriting {
  /// Writes whole lines for the other parser, as many as there are.
  std::function<std::string(std::string_view lines)> lines;
  std::string said{};  ///< an assumption; empty: none
  /// Why the log cannot be read although its rewritten lines can; empty: it can.
  std::function<std::string()> doubt{};
};

/// The parser that `make` makes from the rewritten head, for lines that are rewritten likewise.
Result<std::unique_ptr<LogParser>> make_rewritten(
    const LogHead& head, Rewriting rewriting,
    const std::function<Result<std::unique_ptr<LogParser>>(const LogHead&)>& make);

}  // namespace vramtrack

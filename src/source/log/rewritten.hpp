// A log whose lines are rewritten for the parser of another format: without thousands separators, with tabs between
// cells, or as JSON objects.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "source/log/format.hpp"

namespace vramtrack {

struct Rewriting {
  /// Rewrites whole lines for the other parser, keeping their number.
  std::function<std::string(std::string_view lines)> lines;
  std::string assumption{};  ///< an assumption to report; empty: none
  /// Why the log cannot be read although its rewritten lines can; empty: it can.
  std::function<std::string()> doubt{};
};

/// The parser that `make` creates from the rewritten head, fed with rewritten lines.
Result<std::unique_ptr<LogParser>> make_rewritten(
    const LogHead& head, Rewriting rewriting,
    const std::function<Result<std::unique_ptr<LogParser>>(const LogHead&)>& make);

}  // namespace vramtrack

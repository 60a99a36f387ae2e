// Reports: pure functions from a View to text. A new report takes one file and one line in reports.def.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/view.hpp"

namespace vramtrack {

/// How a surface wants the text formatted; does not affect the content.
struct ReportStyle {
  bool colour = false;    ///< ANSI colours
  std::size_t width = 0;  ///< maximum width of a table line; 0: unlimited
};

struct ReportInfo {
  std::string_view name;
  std::string_view help;
  /// Ends with a newline unless empty. Cost: O(series).
  std::string (*render)(const View& view, const ReportStyle& style);
};

/// The reports in the order of reports.def; nullptr for an unknown name.
std::span<const ReportInfo* const> reports();
const ReportInfo* find_report(std::string_view name);

}  // namespace vramtrack

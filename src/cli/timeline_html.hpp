// A timeline page as one HTML file that needs no network: the data of trace/render/page.hpp with the script and style
// sheet that were built with the dashboard.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack::cli {

/// `json`: from trace::page_json(). Error: this build has no pages, because node was missing when it was built.
Result<std::string> timeline_html(std::string_view title, std::string_view json);

}  // namespace vramtrack::cli

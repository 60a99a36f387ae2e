// The dashboard's files, embedded at build time from page/dist, or one page that explains that it was not built.
#pragma once

#include <span>
#include <string_view>

namespace vramtrack::agent {

struct Asset {
  std::string_view path;  ///< such as "/" or "/assets/app.js"
  std::string_view content_type;
  std::string_view bytes;
  std::string_view etag;  ///< including the quotes
};

/// All files that are served; no request path can reach any other.
std::span<const Asset> assets();
/// nullptr for an unknown path.
const Asset* find_asset(std::string_view path);

}  // namespace vramtrack::agent

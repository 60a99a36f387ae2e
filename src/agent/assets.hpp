// The dashboard's files, embedded at build time from page/dist; where it was not built, one page that says so.
#pragma once

#include <span>
#include <string_view>

namespace vramtrack::agent {

struct Asset {
  std::string_view path;  ///< "/", "/assets/app.js"
  std::string_view content_type;
  std::string_view bytes;
  std::string_view etag;  ///< with its quotes
};

/// Everything that is served as a file: there is no other, whatever path is asked for.
std::span<const Asset> assets();
/// nullptr for an unknown path.
const Asset* find_asset(std::string_view path);

}  // namespace vramtrack::agent

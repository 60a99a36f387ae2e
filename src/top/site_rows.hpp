// The lines of a process that hold memory, as rows of the detail page. Pure.
#pragma once

#include <string>
#include <vector>

#include "report/sites.hpp"
#include "top/screen.hpp"

namespace vramtrack::top {

struct SiteRow {
  std::string text;
  Role role = Role::plain;
  bool is_cut = false;  ///< a row of the table: truncated if there is no room, not wrapped
};
/// A summary, then one row each: the leaking lines first. Empty if the process does not run under the probe.
std::vector<SiteRow> site_rows(const SitesNow& now);

}  // namespace vramtrack::top

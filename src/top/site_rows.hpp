// The lines of a process that hold memory, as text. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/scale.hpp"
#include "report/sites.hpp"
#include "top/screen.hpp"

namespace vramtrack::top {

struct SiteRow {
  std::string text;
  Role role = Role::plain;
  bool is_cut = false;  ///< a row of the table: truncated if there is no room, not wrapped
};
/// For the detail page: a summary, then one row per line, the leaking lines first. Empty if the process does not run
/// under the probe.
std::vector<SiteRow> site_rows(const SitesNow& now);
/// The leaking line that grows the most, "train.py:57 train_step, +126 MiB/min"; empty if none is known.
std::string leaking_line(const SitesReport& report, const Scale& scale);

}  // namespace vramtrack::top

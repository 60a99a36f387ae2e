// The cgroup of a process, as far as an act may use it: cgroup v1, v2, or both together.
#pragma once

#include <string>
#include <string_view>

#include "act/action.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

/// The folder of a cgroup that contains only the subject.
struct OwnCgroup {
  std::string folder;
  bool is_v2 = false;
};

/// Finds the subject's cgroup that has the file `v1_file` ("freezer.state", of the v1 controller `controller`) or
/// `v2_file` ("cgroup.freeze"); v2 first. Errors: it has no cgroup of its own, because it is in the root cgroup or
/// shares one with processes that are neither its children nor part of its container, pod, job or systemd service; this
/// program is in the same cgroup; neither file is writable.
Result<OwnCgroup> own_cgroup(const ActRequest& request, std::string_view controller, std::string_view v1_file,
                             std::string_view v2_file);

/// Writes one value into a control file. Errors name the file.
Status write_control(const std::string& path, std::string_view text);
/// Returns the file's text without the newline; an Error names the file.
Result<std::string> read_control(const std::string& path);

}  // namespace vramtrack::act

// The cgroup of a process, as far as an act may use it: cgroup v1, v2, or both side by side.
#pragma once

#include <string>
#include <string_view>

#include "act/action.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

/// A cgroup's folder that holds the subject and nothing that is not its own.
struct OwnCgroup {
  std::string folder;
  bool is_v2 = false;
};

/// The subject's cgroup with the file `v1_file` ("freezer.state", of the v1 controller `controller`) or `v2_file`
/// ("cgroup.freeze"); v2 first. Errors: it has none of its own, since it lives in the root cgroup or beside processes
/// that are neither its children nor of its container, pod, job or systemd service; this program is in it, too; neither
/// file can be written.
Result<OwnCgroup> own_cgroup(const ActRequest& request, std::string_view controller, std::string_view v1_file,
                             std::string_view v2_file);

/// Writes one value into a control file. Errors name the file.
Status write_control(const std::string& path, std::string_view text);
/// Its text without the newline; an Error names the file.
Result<std::string> read_control(const std::string& path);

}  // namespace vramtrack::act

// How Kubernetes names the pods of this machine, from the folders in which the kubelet keeps their logs: neither an API
// server nor the right to query it is needed.
//
//   /var/log/pods/NAMESPACE_POD_UID/                            each pod that has started
//   /var/log/containers/POD_NAMESPACE_CONTAINER-ID64.log        each container that has
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

struct PodFolder {
  std::string space;  ///< its namespace
  std::string name;
  std::string uid;
  std::map<std::string, std::string> containers;  ///< id (64 hex) -> name
};

/// The folder of logs ("/var/log") that contains the kubelet's; empty if there is none. In a container that sees the
/// machine's processes, it is looked for in the file system of the first of them under `proc_root`.
std::string kubelet_logs(const std::string& proc_root);

/// The pods whose logs are in `logs`, by UID. Folders with other names are ignored. Errors: a folder cannot be read.
/// Cost: two folders are listed.
Result<std::vector<PodFolder>> pods_by_folder(const std::string& logs);

}  // namespace vramtrack

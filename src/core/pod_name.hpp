// What the name of a Kubernetes pod says about who made it.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// The owner that Kubernetes made a pod's name of: "train-7c9d8b6f5-x2x4z" (a Deployment's) and "train-x2x4z" (a Job's
/// or a DaemonSet's) are of "train", "train-worker-3" (a StatefulSet's, or an operator's) is of "train-worker". Pure.
std::string owner_of_pod(std::string_view pod);

}  // namespace vramtrack

// What the name of a Kubernetes pod says about who made it, and how what runs together is called.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// The owner that Kubernetes made a pod's name of: "train-7c9d8b6f5-x2x4z" (a Deployment's) and "train-x2x4z" (a Job's
/// or a DaemonSet's) are of "train", "train-worker-3" (a StatefulSet's, or an operator's) is of "train-worker". Pure.
std::string owner_of_pod(std::string_view pod);

/// What runs together: "job 1234" of a scheduler's id, else "training/resnet" of a pod, its namespace and its owner;
/// empty: neither is known. Pure.
std::string work_of(const std::string& job, const std::string& name_space, const std::string& pod);

}  // namespace vramtrack

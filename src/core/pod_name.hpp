// What the name of a Kubernetes pod reveals about its creator, and the common name of pods that work together.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// The owner from which Kubernetes made a pod's name: "train" for "train-7c9d8b6f5-x2x4z" (a Deployment's) and
/// "train-x2x4z" (a Job's or DaemonSet's), "train-worker" for "train-worker-3" (a StatefulSet's, an operator's). Pure.
std::string owner_of_pod(std::string_view pod);

/// The name of what runs together: "job 1234" from a scheduler's id, else "training/resnet" from a pod's namespace and
/// owner; empty if neither is known. Pure.
std::string work_of(const std::string& job, const std::string& name_space, const std::string& pod);

}  // namespace vramtrack

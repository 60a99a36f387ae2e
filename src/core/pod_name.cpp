#include "core/pod_name.hpp"

#include <algorithm>

#include "core/ascii.hpp"

namespace vramtrack {
namespace {

/// The letters from which Kubernetes makes the random parts of names: no vowels, and no 0, 1 and 3
/// (k8s.io/apimachinery/pkg/util/rand).
bool is_random(std::string_view part) {
  return std::all_of(part.begin(), part.end(), [](char c) {
    return std::string_view("bcdfghjklmnpqrstvwxz2456789").find(c) != std::string_view::npos;
  });
}

/// Takes off the last part after a '-', if `is` accepts it and something is left.
template <class Is>
bool take_last(std::string_view& name, Is is) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0 || !is(name.substr(dash + 1))) return false;
  name = name.substr(0, dash);
  return true;
}

}  // namespace

std::string owner_of_pod(std::string_view pod) {
  std::string_view name = pod;
  const auto is_suffix = [](std::string_view part) { return part.size() == 5 && is_random(part); };
  const auto is_hash = [](std::string_view part) { return part.size() >= 8 && part.size() <= 10 && is_random(part); };
  if (take_last(name, is_suffix))
    take_last(name, is_hash) || take_last(name, is_all_digits);
  else
    take_last(name, is_all_digits);
  return std::string(name);
}

std::string work_of(const std::string& job, const std::string& name_space, const std::string& pod) {
  if (!job.empty()) return "job " + job;
  if (pod.empty()) return {};
  return name_space.empty() ? owner_of_pod(pod) : name_space + '/' + owner_of_pod(pod);
}

}  // namespace vramtrack

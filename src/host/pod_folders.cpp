#include "host/pod_folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>

namespace vramtrack {
namespace {

constexpr std::size_t kIdLength = 64;
constexpr std::string_view kLog = ".log";

/// Splits "a_b_c" into its three parts: names in Kubernetes have no '_'. False if there are not exactly three.
bool split(std::string_view name, std::array<std::string, 3>& parts) {
  const std::size_t first = name.find('_');
  const std::size_t second = first == std::string_view::npos ? first : name.find('_', first + 1);
  if (second == std::string_view::npos || name.find('_', second + 1) != std::string_view::npos) return false;
  parts = {std::string(name.substr(0, first)), std::string(name.substr(first + 1, second - first - 1)),
           std::string(name.substr(second + 1))};
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) { return part.empty(); });
}

bool is_id(std::string_view text) {
  return text.size() == kIdLength && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status for_each_name(const std::string& folder, const std::function<void(const std::string& name)>& take) {
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    take(entry->path().filename().string());
  if (error) return fail(fmt::format("cannot read {}: {}", folder, error.message()));
  return {};
}

}  // namespace

std::string kubelet_logs(const std::string& proc_root) {
  for (const std::string& logs : {std::string("/var/log"), proc_root + "/1/root/var/log"}) {
    std::error_code error;
    if (std::filesystem::is_directory(logs + "/pods", error)) return logs;
  }
  return {};
}

Result<std::vector<PodFolder>> pods_by_folder(const std::string& logs) {
  std::vector<PodFolder> pods;
  std::array<std::string, 3> parts;
  const Status listed = for_each_name(logs + "/pods", [&](const std::string& name) {
    if (split(name, parts)) pods.push_back({parts[0], parts[1], parts[2], {}});
  });
  if (!listed) return fail(listed.error());
  // A pod that was made again under its name has another UID: the id of a container then belongs to neither or to both,
  // and only the one requested together with its UID counts.
  const Status linked = for_each_name(logs + "/containers", [&](const std::string& name) {
    if (!name.ends_with(kLog)) return;
    const std::string stem = name.substr(0, name.size() - kLog.size());
    if (!split(stem, parts) || parts[2].size() < kIdLength + 2) return;
    const std::size_t dash = parts[2].size() - kIdLength - 1;
    const std::string id = parts[2].substr(dash + 1);
    if (parts[2][dash] != '-' || !is_id(id)) return;
    for (PodFolder& pod : pods)
      if (pod.name == parts[0] && pod.space == parts[1]) pod.containers[id] = parts[2].substr(0, dash);
  });
  if (!linked) return fail(linked.error());
  return pods;
}

}  // namespace vramtrack

#include "host/cgroup.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "host/small_file.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kContainerIdLength = 64;
constexpr std::size_t kMostBytes = 65536;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  if (text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix)
    text.remove_suffix(suffix.size());
  return text;
}

/// The id in "docker-<id>.scope", "crio-<id>", "kubepods-…:cri-containerd:<id>", "<id>"; otherwise empty.
std::string_view container_of(std::string_view component) {
  // The monitor (conmon) lives beside the container in a cgroup named after it and is not part of it. A podman
  // pod's own slice carries an id of the same shape.
  if (component.find("-conmon-") != std::string_view::npos || component.starts_with("libpod_pod_")) return {};
  const std::string_view name = without_suffix(component, ".scope");
  if (name.size() < kContainerIdLength) return {};
  const std::string_view id = name.substr(name.size() - kContainerIdLength);
  if (!is_hex(id)) return {};
  if (name.size() == kContainerIdLength) return id;
  const char before = name[name.size() - kContainerIdLength - 1];
  return before == '-' || before == ':' ? id : std::string_view{};
}

/// The UID, with dashes, in "pod<uid>" or "kubepods-burstable-pod<uid with underscores>.slice"; otherwise empty.
std::string pod_of(std::string_view component) {
  // containerd without its systemd driver writes "kubepods-…-pod<uid>.slice:cri-containerd:<id>" as one component.
  component = without_suffix(component.substr(0, component.find(':')), ".slice");
  const std::size_t at = component.rfind("pod");
  if (at == std::string_view::npos || (at != 0 && component[at - 1] != '-')) return {};
  std::string uid(component.substr(at + 3));
  std::replace(uid.begin(), uid.end(), '_', '-');
  // A static pod's UID is the 32-digit hash of its manifest, the others' is a UUID.
  if (uid.size() != 32 && uid.size() != 36) return {};
  const bool only_uid =
      std::all_of(uid.begin(), uid.end(), [](unsigned char c) { return std::isxdigit(c) != 0 || c == '-'; });
  return only_uid ? uid : std::string{};
}

/// Reads one path into `identity`. `is_roots`: whether only root can have made what is in that folder.
template <class IsRoots>
void read_path(std::string_view path, IsRoots is_roots, CgroupIdentity& identity) {
  bool kubernetes = false;
  bool slurm = false;
  bool lxc = false;
  bool in_slices = true;   // of this machine's systemd
  bool after_job = false;  // the previous component named the job
  std::string folder;
  std::string_view rest = path;
  while (!rest.empty()) {
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    const std::string_view component = rest.substr(0, rest.find('/'));
    rest.remove_prefix(component.size());
    if (component.empty() || !is_roots(folder)) break;
    folder.append("/").append(component);
    if (component == "..") continue;

    if (in_slices && identity.unit.empty() && (component.ends_with(".service") || component.ends_with(".scope")))
      identity.unit = component;
    in_slices = in_slices && component.ends_with(".slice");
    if (lxc && identity.container.empty()) {
      identity.container = component;
      lxc = false;
      continue;
    }
    lxc = component == "lxc" || component == "lxc.payload";
    if (component.starts_with("lxc.payload.") && identity.container.empty()) identity.container = component.substr(12);
    const bool is_unclaimed = identity.pod.empty() && identity.slurm_job.empty();
    kubernetes = kubernetes || component.find("kubepods") != std::string_view::npos;
    slurm = slurm || component.find("slurm") != std::string_view::npos;
    if (kubernetes && is_unclaimed)
      if (std::string pod = pod_of(component); !pod.empty()) {
        identity.pod = std::move(pod);
        identity.container.clear();  // the node itself runs in that one
      }
    if (const std::string_view id = container_of(component); !id.empty() && identity.container.empty())
      identity.container = id;
    if (after_job && component.starts_with("step_")) identity.slurm_job.append(".").append(component.substr(5));
    after_job = slurm && is_unclaimed && component.starts_with("job_") && parse_unsigned(component.substr(4));
    if (after_job) identity.slurm_job = component.substr(4);
    // A user's own systemd creates folders with names that the user chooses.
    if (component.starts_with("user@") && component.ends_with(".service")) break;
  }
}

/// A line of a cgroup file: "4:cpu,cpuacct:/path".
struct Line {
  std::string_view controllers;
  std::string_view path;
};
std::optional<Line> parse_line(std::string_view line) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return Line{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

/// The path in the hierarchy of `controllers`; empty if there is none.
std::string path_in(std::string_view text, std::string_view controllers) {
  while (!text.empty())
    if (const auto line = parse_line(next_line(text)); line && line->controllers == controllers)
      return std::string(line->path);
  return {};
}

/// How informative a line is; the path of the most informative line is kept for display.
int information(const CgroupIdentity& identity, std::string_view path) {
  return (identity.container.empty() ? 0 : 4) + (identity.pod.empty() ? 0 : 4) + (identity.slurm_job.empty() ? 0 : 4) +
         (path.size() > 1 ? 2 : 0);
}

}  // namespace

CgroupIdentity parse_cgroup(std::string_view text, const FolderOwner& owner) {
  CgroupIdentity result;
  int best = -1;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const auto parts = parse_line(line);
    if (!parts) continue;
    const std::string_view path = parts->path;
    CgroupIdentity identity;
    read_path(
        path, [&](const std::string& folder) { return owner(parts->controllers, folder).value_or(0) == 0; }, identity);
    // On a hybrid host the v2 line may be "/" while the v1 lines have the information; if equal, v2 is preferred.
    const bool unified = line.starts_with("0::");
    const int score = 2 * information(identity, path) + (unified ? 1 : 0);
    if (score > best) {
      best = score;
      result.path = path;
    }
    for (const auto field : {&CgroupIdentity::container, &CgroupIdentity::pod, &CgroupIdentity::unit})
      if ((result.*field).empty()) result.*field = std::move(identity.*field);
    // Some controllers know the job but not its step.
    if (identity.slurm_job.substr(0, identity.slurm_job.find('.')) ==
            result.slurm_job.substr(0, result.slurm_job.find('.')) ||
        result.slurm_job.empty())
      if (identity.slurm_job.size() > result.slurm_job.size()) result.slurm_job = std::move(identity.slurm_job);
  }
  return result;
}

std::optional<CgroupIdentity> cgroup_of(const std::string& proc_root, std::uint32_t pid) {
  const auto text = read_text_file(proc_root + '/' + std::to_string(pid) + "/cgroup", kMostBytes);
  if (!text) return std::nullopt;
  const std::string own = read_text_file(proc_root + "/self/cgroup", kMostBytes).value_or(std::string());
  const std::string mounts = std::filesystem::path(proc_root).parent_path() / "sys/fs/cgroup";
  const auto owner = [&](std::string_view controllers, const std::string& folder) -> std::optional<uid_t> {
    if (folder.find("/..") != std::string_view::npos) return std::nullopt;
    std::string hierarchy = mounts;
    if (!controllers.empty())
      hierarchy.append("/").append(controllers.substr(controllers.starts_with("name=") ? 5 : 0));
    else if (::access((mounts + "/cgroup.controllers").c_str(), F_OK) != 0)
      hierarchy.append("/unified");
    struct stat info {};
    if (::stat((hierarchy + folder).c_str(), &info) == 0) return info.st_uid;
    // A folder that does not exist has no known owner; but a container may have a part of the hierarchy
    // mounted as if it were all, and not find itself there either.
    const bool is_whole = ::access((hierarchy + path_in(own, controllers)).c_str(), F_OK) == 0;
    return is_whole ? std::optional(static_cast<uid_t>(-1)) : std::nullopt;
  };
  return parse_cgroup(*text, owner);
}

}  // namespace vramtrack

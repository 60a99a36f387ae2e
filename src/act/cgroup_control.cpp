#include "act/cgroup_control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "act/proof.hpp"
#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "host/process_tree.hpp"
#include "host/small_file.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMostProcs = 1U << 20U;

bool contains(std::string_view text, std::string_view part) {
  return !part.empty() && text.find(part) != std::string_view::npos;
}

/// Whether the path is that of the subject's container, pod, job or service; if so, everything in it belongs together.
bool is_of_workload(std::string_view path, const Subject& subject) {
  const std::string job = job_number(subject.job);
  if (contains(path, subject.container) && subject.container.size() >= 12) return true;
  if (!job.empty() && (contains(path, "/job_" + job + "/") || path.ends_with("/job_" + job))) return true;
  const std::string_view last = path.substr(path.rfind('/') + 1);
  return last.ends_with(".service") && !last.starts_with("user@");
}

void add_processes(const std::filesystem::path& folder, std::vector<std::uint32_t>& pids) {
  if (const auto text = read_text_file((folder / "cgroup.procs").string(), kMostProcs))
    for (std::string_view rest = *text; !rest.empty();)
      if (const auto pid = parse_unsigned(trimmed(next_line(rest)))) pids.push_back(static_cast<std::uint32_t>(*pid));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_directory(error) && !entry.is_symlink(error)) add_processes(entry.path(), pids);
}

/// Other processes in the folder; empty: everything in the folder belongs to the subject.
std::string others_in(const std::string& folder, std::string_view path, const ActRequest& request) {
  std::vector<std::uint32_t> pids;
  add_processes(folder, pids);
  const auto own = static_cast<std::uint32_t>(::getpid());
  if (std::find(pids.begin(), pids.end(), own) != pids.end() || std::find(pids.begin(), pids.end(), 1U) != pids.end())
    return "vramtrack itself, or init, is in it";
  if (is_of_workload(path, request.subject)) return {};
  const auto tree = process_tree(request.tools.proc_root, request.subject.process.pid);
  const auto others =
      std::count_if(pids.begin(), pids.end(), [&tree](std::uint32_t pid) { return !tree.contains(pid); });
  return others == 0 ? std::string() : fmt::format("{} other process{} in it", others, others == 1 ? " is" : "es are");
}

struct Paths {
  std::optional<std::string> v1;  ///< the path for the controller
  std::optional<std::string> v2;
};

Paths paths_of(std::string_view text, std::string_view controller) {
  Paths paths;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    // A path that leads up is outside our root: we must not write there.
    if (contains(path, "/../") || path.ends_with("/..")) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (line.substr(0, 3) == "0::") paths.v2 = path;
    while (!controllers.empty()) {
      const std::string_view one = controllers.substr(0, controllers.find(','));
      if (one == controller) paths.v1 = path;
      controllers.remove_prefix(std::min(controllers.size(), one.size() + 1));
    }
  }
  return paths;
}

}  // namespace

Result<OwnCgroup> own_cgroup(const ActRequest& request, std::string_view controller, std::string_view v1_file,
                             std::string_view v2_file) {
  const Tools& tools = request.tools;
  const auto text = read_text_file(fmt::format("{}/{}/cgroup", tools.proc_root, request.subject.process.pid), 65536);
  if (!text) return fail("the cgroup of the process cannot be read");
  const Paths paths = paths_of(*text, controller);
  const bool hybrid = ::access((tools.cgroup_root + "/cgroup.controllers").c_str(), F_OK) != 0;
  std::string why = fmt::format("it has no cgroup of its own with {} or {}", v2_file, v1_file);
  const auto usable = [&](const std::string& base, const std::optional<std::string>& path, std::string_view file) {
    if (!path || path->size() <= 1) return false;
    const std::string folder = base + *path;
    const std::string control = folder + '/' + std::string(file);
    if (::access(control.c_str(), F_OK) != 0) return false;
    if (::access(control.c_str(), W_OK) != 0) return why = fmt::format("no permission to write {}", control), false;
    const std::string others = others_in(folder, *path, request);
    if (!others.empty()) why = fmt::format("the cgroup {} cannot be used: {}", *path, others);
    return others.empty();
  };
  const std::string v2_base = tools.cgroup_root + (hybrid ? "/unified" : "");
  if (usable(v2_base, paths.v2, v2_file)) return OwnCgroup{v2_base + *paths.v2, true};
  const std::string v1_base = tools.cgroup_root + '/' + std::string(controller);
  if (hybrid && usable(v1_base, paths.v1, v1_file)) return OwnCgroup{v1_base + *paths.v1, false};
  return fail(why);
}

Status write_control(const std::string& path, std::string_view text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0 || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail(fmt::format("cannot write '{}' into {}: {}", text, path, errno_words(errno)));
  return {};
}

Result<std::string> read_control(const std::string& path) {
  const auto text = read_text_file(path, 4096);
  if (!text) return fail(fmt::format("cannot read {}: {}", path, errno_words(errno)));
  return std::string(trimmed(*text));
}

}  // namespace vramtrack::act

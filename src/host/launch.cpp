#include "host/launch.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "host/process.hpp"
#include "host/small_file.hpp"

namespace vramtrack {
namespace {

/// Programs below which each child is a separate run, by their comm (15 characters): inits, step daemons, and the
/// programs from which people start their runs.
constexpr auto kSessionHosts = std::to_array<std::string_view>(
    {"systemd",        "init",           "tini",     "tini-static", "dumb-init", "docker-init", "catatonit",
     "s6-svscan",      "runit",          "runsvdir", "conmon",      "lxc-start", "slurmstepd",  "sshd",
     "sshd-session",   "tmux: server",   "screen",   "SCREEN",      "login",     "su",          "sudo",
     "cron",           "crond",          "atd",      "supervisord", "jupyter",   "jupyter-lab", "jupyter-noteboo",
     "jupyter-server", "jupyterhub-sing"});
constexpr auto kShells = std::to_array<std::string_view>({"bash", "sh", "dash", "zsh", "ksh", "fish", "busybox"});
constexpr int kMostParents = 64;

struct Step {
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t group = 0;
  std::uint32_t session = 0;
  std::uint64_t start_ticks = 0;
  std::string name;
  uid_t owner = 0;
};

std::optional<Step> step_of(const std::string& proc_root, std::uint32_t pid) {
  const std::string folder = proc_root + '/' + std::to_string(pid);
  const auto text = read_text_file(folder + "/stat", 4096);
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  struct stat status {};
  if (!stat || ::stat(folder.c_str(), &status) != 0) return std::nullopt;
  return Step{pid,
              stat->parent_pid,
              stat->group,
              stat->session,
              std::max<std::uint64_t>(stat->start_ticks, 1),
              std::string(stat->name),
              status.st_uid};
}

/// Whether the parent is part of the run, rather than only having started it.
bool is_part_of_run(const Step& child, const Step& parent) {
  const auto is_in = [&parent](const auto& names) {
    return std::find(names.begin(), names.end(), parent.name) != names.end();
  };
  if (parent.pid <= 1 || parent.owner != child.owner || is_in(kSessionHosts) ||
      parent.name.starts_with("containerd-shim"))
    return false;
  // A script's commands are in its group. An interactive shell gives each job a group, and a job that is to outlive a
  // shell gets a session. Launchers do that with their ranks, too, but are not shells.
  const bool is_shell = is_in(kShells) || parent.name.ends_with(".sh");  // a script is called by its file
  return !is_shell || (child.session == parent.session && child.group == parent.group);
}

}  // namespace

std::string launch_of(const std::string& proc_root, std::uint32_t pid, std::uint64_t start_ticks) {
  auto at = step_of(proc_root, pid);
  if (!at || at->start_ticks != start_ticks) return {};
  for (int i = 0; i < kMostParents; ++i) {
    auto parent = step_of(proc_root, at->parent_pid);
    if (!parent || !is_part_of_run(*at, *parent)) break;
    at = std::move(parent);
  }
  return fmt::format("{} pid {}", at->name, at->pid);
}

}  // namespace vramtrack

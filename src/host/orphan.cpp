#include "host/orphan.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace vramtrack {
namespace {

/// Programs that adopt the processes of others, and shells, by their comm.
constexpr std::array<std::string_view, 20> kAdopting = {
    "systemd",   "init",  "tini",       "tini-static", "dumb-init", "docker-init", "catatonit",
    "s6-svscan", "runit", "runsvdir",   "conmon",      "lxc-start", "bash",        "sh",
    "dash",      "zsh",   "slurmstepd", "ksh",         "fish",      "busybox"};

bool adopts(std::string_view name) {
  return std::find(kAdopting.begin(), kAdopting.end(), name) != kAdopting.end() ||
         name.starts_with("containerd-shim") || name.ends_with(".sh");  // a script is called by its file
}

}  // namespace

bool has_lost_its_starter(const Parentage& p) {
  if (p.is_helper && p.parent_is_visible && adopts(p.parent_name)) return true;
  // A parent of the same group started it, even as pid 1 of a container. Of a group that is led from outside, nobody
  // can be seen to have ended.
  if (p.group == 0 || (p.parent_is_visible && p.parent_group == p.group)) return false;
  // Whoever inherited it is of another session; a job of its own leads its group.
  const bool is_inherited = p.parent_pid == 1 || (p.parent_is_visible && p.parent_session != p.session);
  return is_inherited && p.group != p.pid && !p.leader_lives;
}

}  // namespace vramtrack

// Holders: the processes that have a GPU's device files open or mapped, and whether each is believed alive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/series.hpp"

namespace vramtrack {

/// The assumed state of a holder.
enum class HolderState : std::uint8_t {
  alive,
  service,          ///< a display server, an MPS server, a daemon of the driver: alive, and meant to stay
  orphaned,         ///< it lives, but the process that started it has ended
  zombie,           ///< it has ended, but its parent has not reaped it
  uninterruptible,  ///< it waits in the kernel ('D'): no signal reaches it
  not_visible,      ///< the driver lists it, but /proc does not show it
};
inline constexpr std::array<std::string_view, 6> kHolderStateNames = {"alive",  "service",         "orphaned",
                                                                      "zombie", "uninterruptible", "not visible"};
std::string_view to_string(HolderState state);

/// One process that holds a device, or may. Its texts are untrusted.
struct Holder {
  ProcessInfo info;
  HolderState state = HolderState::alive;
  std::string why;              ///< one clause for people: "its parent has ended; pid 1 (systemd) inherited it"
  std::optional<double> age_s;  ///< since it started; unknown if /proc/uptime cannot be read
  std::uint32_t parent_pid = 0;
  bool is_worker = false;       ///< it is orphaned, and worked only for the program that started it (LostWorkers)
  std::string kept;             ///< for such a worker: why somebody may wait for it, in one clause; empty: nobody does
  std::set<std::string> files;  ///< device files that it has open or mapped: "/dev/nvidia0"
  bool was_inspected = true;    ///< whether its open files could be read
};

struct HoldersFound {
  std::vector<Holder> holders;    ///< by pid
  std::size_t not_inspected = 0;  ///< processes whose open files may not be read by this user
};

/// Whether `path` is a file through which a program uses a GPU: /dev/nvidia*, /dev/dri/*, /dev/kfd. Pure.
bool is_gpu_file(std::string_view path);

/// The processes with a GPU's file open or mapped, and those of `listed` (pids that a driver lists) whatever they have
/// open. `proc_root` is "/proc" except in tests. Kernel threads are excluded. Without root (CAP_SYS_PTRACE) only this
/// user's processes can be inspected; the others are counted. May be called from any thread. Cost: twice the open
/// files, and the mappings, of each process of the machine, up to some tens of ms: not for a sampling loop.
HoldersFound find_holders(const std::string& proc_root, const std::set<std::uint32_t>& listed);

}  // namespace vramtrack

// GPUs as the kernel's DRM drivers show them under /sys/class/drm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vramtrack::drm {

/// One card.
struct Card {
  std::string id;             ///< amdgpu's unique id, else the PCI address
  int number = 0;             ///< 0 for card0
  std::string driver;         ///< "amdgpu", "xe", "i915", "nouveau", ...; empty if the kernel does not report it
  std::string name;           ///< product name, else vendor and PCI ids
  std::string pci_address;    ///< normal_pci_address()
  std::string folder;         ///< /sys/class/drm/cardN
  bool reports_used = false;  ///< the driver has mem_info_vram_used
  bool uses_gtt = false;      ///< shares_host_memory(), set by the code that found the card
};

/// The cards under `sys_root` that have memory to watch, by number, except cards of the proprietary NVIDIA driver
/// (source nvml reads them) and display-only and virtual devices. Never fails: empty if there is no such folder.
std::vector<Card> find_cards(const std::string& sys_root);

/// Whether the card is an AMD APU, which keeps models in the host's memory (GTT) beside a small carve-out. The third
/// byte of amdgpu's metrics table is its form: 1 for discrete GPUs, 2 or 3 for APUs
/// (drivers/gpu/drm/amd/include/kgd_pp_interface.h, metrics_table_header). Reading the table wakes a sleeping GPU, so
/// call this once.
bool shares_host_memory(const Card& card);

/// Bytes of video memory in use on `card`, including GTT if it shares the host's memory; nullopt if not reported (the
/// card has vanished or is being reset).
std::optional<std::uint64_t> used_bytes(const Card& card);

/// The card's capacity in bytes, likewise; nullopt if the driver does not report it.
std::optional<std::uint64_t> capacity_bytes(const Card& card);

}  // namespace vramtrack::drm

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
  int number = 0;             ///< as in card0
  std::string driver;         ///< "amdgpu", "xe", "i915", "nouveau", ...; empty when the kernel does not say
  std::string name;           ///< product name, else vendor and PCI ids
  std::string pci_address;    ///< normal_pci_address()
  std::string folder;         ///< /sys/class/drm/cardN
  bool reports_used = false;  ///< the driver has mem_info_vram_used
  bool uses_gtt = false;      ///< shares_host_memory(), as whoever found the card has set it
};

/// The cards under `sys_root` that have memory to watch, by number. Excluded are cards of the proprietary NVIDIA
/// driver (source nvml reads them), and display-only and virtual devices. Never fails: no folder, no cards.
std::vector<Card> find_cards(const std::string& sys_root);

/// Whether the card is an APU of AMD, whose models live in the host's memory (GTT) beside a small carve-out. amdgpu's
/// table of metrics has a form for discrete GPUs (1) and others for APUs (2, 3): its third byte
/// (drivers/gpu/drm/amd/include/kgd_pp_interface.h, metrics_table_header). Reading it wakes a GPU that sleeps: ask
/// once.
bool shares_host_memory(const Card& card);

/// Bytes of video memory in use on `card`, with GTT if it shares the host's; nullopt when not reported (the card
/// vanished, or is in reset).
std::optional<std::uint64_t> used_bytes(const Card& card);

/// Bytes of video memory the card has, likewise; nullopt when the driver does not say.
std::optional<std::uint64_t> capacity_bytes(const Card& card);

}  // namespace vramtrack::drm

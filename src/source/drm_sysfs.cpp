#include "source/drm_sysfs.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/order.hpp"
#include "core/pci_address.hpp"
#include "host/small_file.hpp"

namespace vramtrack::drm {
namespace {

/// The value of a "KEY=value" line in a uevent file.
std::string uevent_value(const std::string& text, std::string_view key) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    if (line.size() > key.size() && line.substr(0, key.size()) == key && line[key.size()] == '=')
      return std::string(trimmed(line.substr(key.size() + 1)));
  }
  return {};
}

std::string vendor_name(std::uint64_t vendor) {
  switch (vendor) {
    case 0x1002:
      return "AMD";
    case 0x8086:
      return "Intel";
    case 0x10de:
      return "NVIDIA";
    default:
      return fmt::format("{:04x}", vendor);
  }
}

std::string line_of(const std::string& path) {
  std::array<char, 256> buffer;
  const auto text = read_small_file(path.c_str(), buffer);
  return text ? std::string(trimmed(*text)) : std::string();
}

/// Whether the card's driver reports memory in some way; if not, it is a display or virtual device.
bool has_memory_to_watch(const Card& card, std::uint64_t vendor) {
  if (card.reports_used) return true;
  // Intel's integrated graphics are always at this address and have no memory of their own.
  if (vendor == 0x8086 && card.pci_address == "00000000:00:02.0") return false;
  return card.driver == "xe" || card.driver == "i915" || card.driver == "nouveau" || card.driver == "amdgpu" ||
         card.driver == "radeon";
}

std::optional<std::uint64_t> with_gtt(const Card& card, std::optional<std::uint64_t> vram_bytes, const char* gtt_file) {
  if (!card.uses_gtt || !vram_bytes) return vram_bytes;
  const auto gtt_bytes = read_number_file(card.folder + gtt_file);
  return gtt_bytes ? std::optional(*vram_bytes + *gtt_bytes) : std::nullopt;
}

std::optional<Card> read_card(const std::string& folder, int number) {
  const std::string device = folder + "/device";
  const auto uevent = read_text_file(device + "/uevent", 4096);
  if (!uevent) return std::nullopt;
  Card card;
  card.number = number;
  card.folder = folder;
  card.driver = uevent_value(*uevent, "DRIVER");
  card.pci_address = normal_pci_address(uevent_value(*uevent, "PCI_SLOT_NAME"));
  if (card.driver == "nvidia" || card.pci_address.empty()) return std::nullopt;
  card.reports_used = ::access((device + "/mem_info_vram_used").c_str(), F_OK) == 0;
  const auto vendor = read_number_file(device + "/vendor");
  if (!has_memory_to_watch(card, vendor.value_or(0))) return std::nullopt;
  card.name = line_of(device + "/product_name");
  if (card.name.empty()) {
    const auto model = read_number_file(device + "/device");
    card.name = fmt::format("{} GPU {}", vendor_name(vendor.value_or(0)),
                            model ? fmt::format("{:04x}:{:04x}", vendor.value_or(0), *model) : card.driver);
  }
  const std::string unique = line_of(device + "/unique_id");
  // Some boards return zeros, which do not identify them.
  const bool means_something = unique.find_first_not_of("0x") != std::string::npos;
  card.id = means_something ? unique : card.pci_address;
  return card;
}

}  // namespace

std::vector<Card> find_cards(const std::string& sys_root) {
  std::vector<Card> cards;
  const std::string root = sys_root + "/class/drm";
  DIR* folder = ::opendir(root.c_str());
  if (folder == nullptr) return cards;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    // "card0", but not its connectors ("card0-DP-1") or render nodes, which are the same device again.
    if (name.substr(0, 4) != "card") continue;
    const auto number = parse_unsigned(name.substr(4));
    if (!number) continue;
    if (auto card = read_card(root + "/" + std::string(name), static_cast<int>(*number)))
      cards.push_back(std::move(*card));
  }
  ::closedir(folder);
  order(cards, [](const Card& a, const Card& b) { return a.number < b.number; });
  return cards;
}

bool shares_host_memory(const Card& card) {
  if (card.driver != "amdgpu") return false;
  std::array<char, 256> buffer;
  const auto table = read_small_file((card.folder + "/device/gpu_metrics").c_str(), buffer);
  return table && table->size() >= 4 && static_cast<unsigned char>((*table)[2]) >= 2;
}

std::optional<std::uint64_t> used_bytes(const Card& card) {
  return with_gtt(card, read_number_file(card.folder + "/device/mem_info_vram_used"), "/device/mem_info_gtt_used");
}

std::optional<std::uint64_t> capacity_bytes(const Card& card) {
  if (const auto total = read_number_file(card.folder + "/device/mem_info_vram_total"))
    return with_gtt(card, total, "/device/mem_info_gtt_total");
  // The file of Intel's i915 that ships outside the kernel; xe has one file per tile.
  if (const auto total = read_number_file(card.folder + "/lmem_total_bytes")) return total;
  std::optional<std::uint64_t> sum;
  for (int tile = 0; tile < 8; ++tile) {
    const auto bytes = read_number_file(fmt::format("{}/device/tile{}/physical_vram_size_bytes", card.folder, tile));
    if (!bytes) break;
    sum = sum.value_or(0) + *bytes;
  }
  return sum;
}

}  // namespace vramtrack::drm

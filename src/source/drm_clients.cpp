#include "source/drm_clients.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <set>

#include "core/pci_address.hpp"
#include "core/units.hpp"
#include "host/small_file.hpp"

namespace vramtrack::drm {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

std::optional<std::uint64_t> parse_amount(std::string_view text) {
  const std::size_t blank = text.find_first_of(" \t");
  const auto number = parse_unsigned(text.substr(0, blank));
  if (!number) return std::nullopt;
  const std::string_view unit = blank == std::string_view::npos ? std::string_view{} : trimmed(text.substr(blank));
  if (unit.empty()) return *number;
  if (unit == "KiB") return *number * kBytesPerKiB;
  if (unit == "MiB") return *number * kBytesPerMiB;
  if (unit == "GiB") return *number * kBytesPerGiB;
  return std::nullopt;
}

constexpr std::string_view kGtt = "gtt";

/// Whether the region is memory on the card itself or host memory mapped for it, and not another one that it can reach
/// ("system", "stolen").
bool is_memory_region(std::string_view region) {
  return region.substr(0, 4) == "vram" || region.substr(0, 5) == "local" || region == kGtt;
}

std::vector<std::uint32_t> pids_in(const std::string& proc_root) {
  std::vector<std::uint32_t> pids;
  const Folder folder(::opendir(proc_root.c_str()));
  if (!folder) return pids;
  while (const dirent* entry = ::readdir(folder.get()))
    if (const auto pid = parse_unsigned(entry->d_name)) pids.push_back(static_cast<std::uint32_t>(*pid));
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace

std::optional<Client> parse_fdinfo(std::string_view text) {
  Client client;
  bool is_drm = false;
  // Which of the three kinds of key gave a region's amount: a more precise one replaces a less precise one.
  struct Region {
    std::string_view name;
    int rank;
    std::uint64_t bytes;
  };
  std::array<Region, 16> regions;
  std::size_t count = 0;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.substr(0, 4) != "drm-") continue;
    const std::string_view key = line.substr(4, colon - 4);
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (key == "driver") {
      client.driver = value;
      is_drm = true;
    } else if (key == "pdev") {
      client.pci_address = normal_pci_address(value);
    } else if (key == "client-id") {
      client.id = parse_unsigned(value).value_or(0);
    } else {
      constexpr std::array<std::pair<std::string_view, int>, 3> kKinds = {
          {{"resident-", 3}, {"memory-", 2}, {"total-", 1}}};
      for (const auto& [kind, rank] : kKinds) {
        if (key.substr(0, kind.size()) != kind || !is_memory_region(key.substr(kind.size()))) continue;
        const std::string_view name = key.substr(kind.size());
        const auto bytes = parse_amount(value);
        if (!bytes) continue;
        std::size_t at = 0;
        while (at < count && regions[at].name != name) ++at;
        if (at == count && count < regions.size()) regions[count++] = {name, 0, 0};
        if (at < count && regions[at].rank < rank) regions[at] = {name, rank, *bytes};
      }
    }
  }
  if (!is_drm) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    auto& sum = regions[i].name == kGtt ? client.gtt_bytes : client.vram_bytes;
    sum = sum.value_or(0) + regions[i].bytes;
  }
  return client;
}

void ClientScanner::discover() {
  files_.clear();
  unreadable_ = 0;
  for (const std::uint32_t pid : pids_in(proc_root_)) {
    const std::string process = proc_root_ + "/" + std::to_string(pid);
    const Folder descriptors(::opendir((process + "/fd").c_str()));
    if (!descriptors) {
      if (errno == EACCES || errno == EPERM) ++unreadable_;
      continue;
    }
    while (const dirent* entry = ::readdir(descriptors.get())) {
      // A container may have bound the device elsewhere, but its name stays.
      if (link_target(process + "/fd/" + entry->d_name).find("/dev/dri/") == std::string::npos) continue;
      files_.push_back({pid, process + "/fdinfo/" + entry->d_name});
    }
  }
}

ClientScan ClientScanner::scan(bool discover_first) {
  if (discover_first) discover();
  ClientScan result;
  // A file that is gone may have been reopened under another number; its process may still hold its memory.
  if (!read_known(result) && !discover_first) {
    discover();
    result = {};
    read_known(result);
  }
  result.unreadable = unreadable_;
  return result;
}

bool ClientScanner::read_known(ClientScan& result) const {
  bool all = true;
  std::set<std::pair<std::string, std::uint64_t>> counted;
  struct Sum {
    std::optional<std::uint64_t> vram, gtt;
  };
  std::map<std::pair<std::string, std::uint32_t>, Sum> sums;
  std::array<char, 8192> buffer;
  for (const OpenFile& file : files_) {
    const auto text = read_small_file(file.fdinfo_path.c_str(), buffer);
    const auto client = text ? parse_fdinfo(*text) : std::nullopt;
    all = all && text.has_value();
    if (!client || client->pci_address.empty()) continue;
    Sum& sum = sums[{client->pci_address, file.pid}];
    // Files are in the order of their pids, so a client is counted for the lowest pid.
    if (client->id != 0 && !counted.emplace(client->pci_address, client->id).second) continue;
    if (client->vram_bytes) sum.vram = sum.vram.value_or(0) + *client->vram_bytes;
    if (client->gtt_bytes) sum.gtt = sum.gtt.value_or(0) + *client->gtt_bytes;
  }
  for (const auto& [key, sum] : sums) result.holders.push_back({key.first, key.second, sum.vram, sum.gtt});
  return all;
}

}  // namespace vramtrack::drm

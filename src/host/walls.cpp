#include "host/walls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/ascii.hpp"
#include "core/pci_address.hpp"
#include "host/process.hpp"
#include "host/small_file.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostDmemBytes = 64 * 1024;
constexpr std::size_t kMostEnvironmentBytes = std::size_t{256} << 10U;
constexpr std::size_t kMostFolders = 64;

/// Cuts the first word before `separator` off.
std::string_view next_word(std::string_view& rest, char separator) {
  const std::string_view word = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  return trimmed(word);
}

/// "2G", "512MB", "100k", "123": binary units, with or without a B.
std::optional<std::uint64_t> size_of(std::string_view text) {
  std::string word = lower(std::string(trimmed(text)));
  if (word.ends_with('b')) word.pop_back();
  std::uint64_t unit = 1;
  if (!word.empty()) {
    constexpr std::string_view kUnits = "kmgt";
    if (const std::size_t at = kUnits.find(word.back()); at != std::string_view::npos) {
      unit = std::uint64_t{1} << (10 * (at + 1));
      word.pop_back();
    }
  }
  const auto number = parse_unsigned(word);
  if (!number || *number == 0 || *number > (std::uint64_t{1} << 50U) / unit) return std::nullopt;
  return *number * unit;
}

/// The devices in the order in which CUDA numbers them for a process; empty where that is not known.
std::vector<const DeviceInfo*> numbered(const std::vector<DeviceInfo>& devices, const std::string& visible,
                                        const std::string& order) {
  std::vector<const DeviceInfo*> gpus;
  for (const DeviceInfo& device : devices)
    if (device.parent_id.empty() && device.index) gpus.push_back(&device);
  std::sort(gpus.begin(), gpus.end(), [](const DeviceInfo* a, const DeviceInfo* b) { return *a->index < *b->index; });
  // CUDA puts the fastest first by default; among GPUs of one kind, that is their order.
  const bool are_alike =
      std::all_of(gpus.begin(), gpus.end(), [&](const DeviceInfo* d) { return d->name == gpus.front()->name; });
  const bool is_ordered = are_alike || order == "PCI_BUS_ID";
  if (visible.empty()) return is_ordered ? gpus : std::vector<const DeviceInfo*>();
  std::vector<const DeviceInfo*> out;
  for (std::string_view rest = visible; !rest.empty();) {
    const std::string_view word = next_word(rest, ',');
    const auto number = parse_unsigned(word);
    const auto named = std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& d) {
      return !word.empty() && (d.id == word || (word.size() >= 8 && d.id.starts_with(word)));
    });
    if (named != devices.end())
      out.push_back(&*named);
    else if (number && is_ordered && *number < gpus.size())
      out.push_back(gpus[*number]);
    else
      break;  // CUDA reads no further either
  }
  return out;
}

std::string short_id(const ProcessInfo& process) {
  constexpr std::size_t kDigits = 12;
  if (!process.container.empty()) return "container " + process.container.substr(0, kDigits);
  return fmt::format("pid {}", process.pid);
}

}  // namespace

std::map<std::string, std::uint64_t> parse_dmem(std::string_view text) {
  std::map<std::string, std::uint64_t> out;
  while (!text.empty()) {
    const std::string_view line = trimmed(next_line(text));
    const std::size_t blank = line.rfind(' ');
    if (blank == std::string_view::npos) continue;
    if (const auto bytes = parse_unsigned(trimmed(line.substr(blank + 1))))
      out[lower(std::string(trimmed(line.substr(0, blank))))] = *bytes;
  }
  return out;
}

std::optional<std::map<std::size_t, std::uint64_t>> parse_mps_limits(std::string_view text) {
  std::map<std::size_t, std::uint64_t> out;
  while (!text.empty()) {
    const std::string_view entry = next_word(text, ',');
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const auto device = parse_unsigned(trimmed(entry.substr(0, equals)));
    const auto bytes = size_of(entry.substr(equals + 1));
    if (!device || *device > 4095 || !bytes) return std::nullopt;
    out[static_cast<std::size_t>(*device)] = *bytes;
  }
  return out;
}

std::optional<std::uint64_t> parse_hami_limit(std::string_view text) {
  return size_of(text);
}

std::optional<double> parse_torch_fraction(std::string_view text) {
  constexpr std::string_view kKey = "per_process_memory_fraction:";
  while (!text.empty()) {
    const std::string_view entry = next_word(text, ',');
    if (!entry.starts_with(kKey)) continue;
    const std::string_view number = entry.substr(kKey.size());
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc{} && value > 0 && value <= 1) return value;
  }
  return std::nullopt;
}

void WallReader::add_cgroup(const ProcessInfo& process, const std::vector<DeviceInfo>& devices,
                            std::vector<Wall>& out) {
  std::string folder = process.cgroup;
  // A path may not lead out of the cgroup file system.
  if (folder.empty() || folder.front() != '/' || folder.find("/../") != std::string::npos || folder.ends_with("/.."))
    return;
  if (folder == "/") folder.clear();
  // The root, too: within a namespace of cgroups it is the container's own group.
  for (std::size_t i = 0; i < kMostFolders; ++i) {
    if (const auto text = read_text_file(cgroup_root_ + folder + "/dmem.max", kMostDmemBytes)) {
      for (const auto& [region, bytes] : parse_dmem(*text))
        for (const DeviceInfo& device : devices) {
          const std::string address = pci_address_of(device.pci_bus_id);
          if (address.empty() || !device.parent_id.empty()) continue;
          // The kernel writes the domain with four digits.
          if (region.find(std::string_view(address).substr(4)) == std::string::npos) continue;
          // A GPU's other regions are not its memory: "stolen" is the host's.
          if (region.find("stolen") != std::string::npos) continue;
          out.push_back({device.id, bytes, "dmem.max of " + (folder.empty() ? "/" : folder)});
        }
    }
    if (folder.empty()) break;
    folder.resize(folder.rfind('/'));
  }
}

const WallReader::Environment& WallReader::environment_of(const ProcessInfo& process) {
  Environment& known = environments_[process.pid];
  if (known.start_ticks == process.start_ticks && known.start_ticks != 0) return known;
  known = {};
  known.start_ticks = process.start_ticks;
  const auto text = read_text_file(fmt::format("{}/{}/environ", proc_root_, process.pid), kMostEnvironmentBytes);
  if (!text) return known;
  constexpr std::string_view kHami = "CUDA_DEVICE_MEMORY_LIMIT";
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string value(entry.substr(equals + 1));
    if (name == "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") known.mps = value;
    if (name == "PYTORCH_ALLOC_CONF" || (name == "PYTORCH_CUDA_ALLOC_CONF" && known.torch.empty())) known.torch = value;
    if (name == "CUDA_VISIBLE_DEVICES") known.visible = value;
    if (name == "CUDA_DEVICE_ORDER") known.order = value;
    if (name == kHami) known.hami = value;
    if (name.starts_with(kHami) && name.size() > kHami.size() + 1)
      if (const auto number = parse_unsigned(name.substr(kHami.size() + 1))) known.hami_of[*number] = value;
  }
  if (!known.hami.empty() || !known.hami_of.empty()) {
    const MappedNames mapped = read_mapped_names(proc_root_, process.pid);
    known.has_hami = std::find(mapped.names.begin(), mapped.names.end(), "libvgpu.so") != mapped.names.end();
  }
  return known;
}

void WallReader::add_environment(const ProcessInfo& process, const std::vector<DeviceInfo>& devices,
                                 std::vector<Wall>& out) {
  const Environment& known = environment_of(process);
  if (known.mps.empty() && known.torch.empty() && !known.has_hami) return;
  const std::vector<const DeviceInfo*> cuda = numbered(devices, known.visible, known.order);
  const std::string owner = short_id(process);
  // One entry for a GPU that the process does not see switches all of them off.
  if (const auto limits = parse_mps_limits(known.mps); limits && process.kind.find("MPS") != std::string::npos)
    if (limits->empty() || limits->rbegin()->first < cuda.size())
      for (const auto& [number, bytes] : *limits)
        out.push_back(
            {cuda[number]->id, bytes, fmt::format("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of pid {}", process.pid)});
  if (known.has_hami)
    for (std::size_t i = 0; i < cuda.size(); ++i) {
      const auto own = known.hami_of.find(i);
      if (const auto bytes = parse_hami_limit(own != known.hami_of.end() ? own->second : known.hami))
        out.push_back({cuda[i]->id, *bytes, "HAMi's CUDA_DEVICE_MEMORY_LIMIT of " + owner});
    }
  if (const auto fraction = parse_torch_fraction(known.torch))
    for (const DeviceInfo* device : cuda)
      if (device->capacity_bytes)
        out.push_back(
            {device->id,
             static_cast<std::uint64_t>(std::llround(*fraction * static_cast<double>(*device->capacity_bytes))),
             fmt::format("PyTorch's per_process_memory_fraction of pid {}", process.pid)});
}

std::vector<Wall> WallReader::read(const ProcessInfo& process, const std::vector<DeviceInfo>& devices) {
  std::vector<Wall> out;
  add_cgroup(process, devices, out);
  add_environment(process, devices, out);
  return out;
}

void WallReader::keep(const std::map<std::uint32_t, std::uint64_t>& living) {
  std::erase_if(environments_, [&living](const auto& known) { return !living.contains(known.first); });
}

}  // namespace vramtrack

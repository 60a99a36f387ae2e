#include "live/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/driver_share.hpp"
#include "core/order.hpp"
#include "core/pci_address.hpp"
#include "host/small_file.hpp"

namespace vramtrack {
namespace {

/// Which file belongs to which GPU, by PCI address.
class DeviceFiles {
 public:
  DeviceFiles(const std::string& proc_root, const std::string& sys_root) : sys_root_(sys_root) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(proc_root + "/driver/nvidia/gpus", error))
      read_minor(entry.path());
  }

  /// Empty: unknown, or a file of all GPUs.
  [[nodiscard]] std::string address_of(const std::string& file) const {
    if (const auto known = nvidia_.find(file); known != nvidia_.end()) return known->second;
    if (!file.starts_with("/dev/dri/")) return {};
    std::error_code error;
    const auto link =
        std::filesystem::read_symlink(sys_root_ + "/class/drm/" + file.substr(file.rfind('/') + 1) + "/device", error);
    return error ? std::string() : normal_pci_address(link.filename().string());
  }

 private:
  void read_minor(const std::filesystem::path& folder) {
    const auto text = read_text_file((folder / "information").string(), 4096);
    if (!text) return;
    constexpr std::string_view kKey = "Device Minor:";
    for (std::string_view rest = *text; !rest.empty();) {
      const std::string_view line = next_line(rest);
      if (!line.starts_with(kKey)) continue;
      nvidia_["/dev/nvidia" + std::string(trimmed(line.substr(kKey.size())))] =
          normal_pci_address(folder.filename().string());
    }
  }

  std::string sys_root_;
  std::map<std::string, std::string> nvidia_;
};

/// Without the driver's own table, GPU 0 is assumed to be /dev/nvidia0.
bool has_open(const Holder& holder, const DeviceInfo& device, const DeviceFiles& files) {
  const std::string address = normal_pci_address(device.pci_bus_id);
  const std::string by_index = device.index ? fmt::format("/dev/nvidia{}", *device.index) : std::string();
  return std::any_of(holder.files.begin(), holder.files.end(), [&](const std::string& file) {
    const std::string its = files.address_of(file);
    return its.empty() ? file == by_index : its == address;
  });
}

const Holder* find(const HoldersFound& found, std::uint32_t pid) {
  const auto at = std::find_if(found.holders.begin(), found.holders.end(),
                               [pid](const Holder& holder) { return holder.info.pid == pid; });
  return at != found.holders.end() ? &*at : nullptr;
}

/// What the driver reports for each process, by device id and pid; nullopt: listed without an amount.
using Listed = std::map<std::string, std::map<std::uint32_t, std::optional<std::uint64_t>>>;

Listed listed(const Batch& batch, const Catalog& catalog) {
  Listed out;
  for (const ProcessReading& load : batch.loads) {
    const SeriesKey& key = catalog.key(load.series);
    if (key.pid != 0) out[key.device_id][key.pid];
  }
  for (const Sample& sample : batch.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    if (key.metric == Metric::process_used) out[key.device_id][key.pid] = sample.bytes;
  }
  return out;
}

void divide(DeviceLedger& ledger) {
  const std::uint64_t used = ledger.used_bytes.value_or(0);
  const std::uint64_t rest = used - std::min(used, ledger.process_bytes);
  const auto share = static_cast<std::uint64_t>(driver_share_bytes(ledger.device.capacity_bytes));
  ledger.driver_bytes = std::min(rest, share);
  ledger.unattributed_bytes = rest - ledger.driver_bytes;
}

void add_lines(DeviceLedger& ledger, const Listed& all, const HoldersFound& found) {
  const auto its = all.find(ledger.device.id);
  if (its == all.end()) return;
  for (const auto& [pid, bytes] : its->second) {
    const Holder* holder = find(found, pid);
    if (holder == nullptr) continue;  // it has ended since the poll
    ledger.process_bytes += bytes.value_or(0);
    if (!bytes) ++ledger.without_bytes;
    ledger.lines.push_back({*holder, bytes, {}});
  }
  order(ledger.lines,
        [](const LedgerLine& a, const LedgerLine& b) { return a.bytes.value_or(0) > b.bytes.value_or(0); });
}

}  // namespace

std::vector<Walled> walled_lines(const DeviceLedger& one) {
  std::vector<Walled> out;
  for (const LedgerLine& line : one.lines) out.push_back({static_cast<double>(line.bytes.value_or(0)), line.walls});
  return out;
}

std::set<std::uint32_t> listed_pids(const Batch& batch, const Catalog& catalog) {
  std::set<std::uint32_t> pids;
  for (const auto& [device, processes] : listed(batch, catalog))
    for (const auto& [pid, bytes] : processes) pids.insert(pid);
  return pids;
}

Ledger make_ledger(const Batch& batch, const Catalog& catalog, const HoldersFound& found, const std::string& proc_root,
                   const std::string& sys_root) {
  Ledger ledger;
  ledger.not_inspected = found.not_inspected;
  const Listed all = listed(batch, catalog);
  const std::set<std::uint32_t> pids = listed_pids(batch, catalog);
  std::map<std::string, std::uint64_t> used;
  std::map<std::string, std::uint64_t> reserved;
  for (const Sample& sample : batch.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    if (key.metric == Metric::device_used) used[key.device_id] = sample.bytes;
    if (key.metric == Metric::device_reserved) reserved[key.device_id] = sample.bytes;
  }
  for (const DeviceInfo& device : catalog.devices()) {
    const auto its = used.find(device.id);
    DeviceLedger one;
    one.device = device;
    if (its != used.end()) one.used_bytes = its->second;
    if (const auto kept = reserved.find(device.id); kept != reserved.end()) one.reserved_bytes = kept->second;
    add_lines(one, all, found);
    divide(one);
    if (!one.used_bytes && one.lines.empty()) continue;
    ledger.devices.push_back(std::move(one));
  }
  const DeviceFiles files(proc_root, sys_root);
  for (const Holder& holder : found.holders) {
    if (pids.contains(holder.info.pid)) continue;
    bool is_placed = false;
    for (DeviceLedger& one : ledger.devices) {
      if (!has_open(holder, one.device, files)) continue;
      one.not_listed.push_back(holder);
      is_placed = true;
    }
    if (!is_placed) ledger.elsewhere.push_back(holder);
  }
  return ledger;
}

}  // namespace vramtrack

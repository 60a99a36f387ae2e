#include "live/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/format.hpp"
#include "core/order.hpp"

namespace vramtrack {
namespace {

std::optional<std::uint64_t> free_of(const DeviceLedger& one) {
  if (!one.used_bytes || !one.device.capacity_bytes) return std::nullopt;
  const std::uint64_t taken = *one.used_bytes + one.reserved_bytes;
  return *one.device.capacity_bytes - std::min(*one.device.capacity_bytes, taken);
}

bool begins_with_any(const std::vector<std::string>& beginnings, const std::string& text) {
  return !text.empty() && std::any_of(beginnings.begin(), beginnings.end(),
                                      [&text](const std::string& beginning) { return text.starts_with(beginning); });
}

template <class T>
bool holds(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Whether `device` is the GPU or MIG instance that `name` names: a GPU by number or UUID, an instance by UUID.
bool is_named(const DeviceInfo& device, const std::string& name) {
  return device.id == name || (device.parent_id.empty() && device.index && std::to_string(*device.index) == name);
}

bool is_among(const std::vector<const DeviceLedger*>& devices, const std::string& name) {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const DeviceLedger* one) { return is_named(one->device, name); });
}

/// The GPU's figures include its instances' processes.
bool is_whole(const DeviceLedger& one) {
  return one.device.parent_id.empty();
}

}  // namespace

Waiting::Waiting(WaitFor what, StartOf start_of) : what_(std::move(what)), start_of_(std::move(start_of)) {}

bool Waiting::is_meant(const DeviceLedger& one) const {
  if (what_.gpus.empty()) return is_whole(one);
  return std::any_of(what_.gpus.begin(), what_.gpus.end(),
                     [&one](const std::string& gpu) { return is_named(one.device, gpu); });
}

bool Waiting::is_same(const Holder& holder) const {
  const auto known = starts_.find(holder.info.pid);
  return known != starts_.end() && known->second == holder.info.start_ticks;
}

bool Waiting::is_meant(const Holder& holder) const {
  if (!what_.names_processes()) return holder.state != HolderState::service;
  if (!what_.pids.empty() && !is_same(holder)) return false;
  if (!what_.users.empty() && !holds(what_.users, holder.info.user)) return false;
  return what_.containers.empty() || begins_with_any(what_.containers, holder.info.container) ||
         begins_with_any(what_.containers, holder.info.pod);
}

Status Waiting::check(const std::vector<const DeviceLedger*>& devices) const {
  for (const std::string& gpu : what_.gpus)
    if (!is_among(devices, gpu))
      return fail(fmt::format("there is no GPU {} here; 'vramtrack doctor' lists the GPUs", gpu));
  for (const DeviceLedger* one : devices) {
    if (what_.free_bytes && !free_of(*one))
      return fail(
          fmt::format("{}: the driver does not report how much memory is free, so waiting for it would not end; wait "
                      "until no process holds any of it instead",
                      device_words(one->device)));
    if (what_.free_bytes && *what_.free_bytes > *one->device.capacity_bytes - one->reserved_bytes)
      return fail(fmt::format("{} has {} in all, so {} will never be free", device_words(one->device),
                              format_bytes(*one->device.capacity_bytes - one->reserved_bytes),
                              format_bytes(*what_.free_bytes)));
  }
  return {};
}

void Waiting::remember_starts(const Ledger& ledger) {
  for (const std::uint32_t pid : what_.pids) {
    if (const auto now = start_of_(pid)) {
      starts_[pid] = *now;
      continue;
    }
    for (const DeviceLedger& one : ledger.devices)
      for (const LedgerLine& line : one.lines)
        if (line.holder.info.pid == pid) starts_[pid] = line.holder.info.start_ticks;
  }
}

void Waiting::add_device(const DeviceLedger& one, WaitLook& out) const {
  out.devices.push_back({one.device, one.used_bytes, free_of(one), is_whole(one) ? one.unattributed_bytes : 0});
  const WaitDevice& device = out.devices.back();
  const std::string name = device_words(one.device);
  const bool lacks = what_.free_bytes && (!device.free_bytes || *device.free_bytes < *what_.free_bytes);
  if (lacks)
    out.unmet.push_back(device.free_bytes
                            ? fmt::format("{}: {} free, {} wanted", name, format_bytes(*device.free_bytes),
                                          format_bytes(*what_.free_bytes))
                            : fmt::format("{}: the driver does not report how much memory is free", name));
  std::size_t in_the_way = 0;
  const auto add = [&](const Holder& holder, const std::optional<std::uint64_t>& bytes, bool is_listed) {
    const bool counts = what_.is_empty && is_meant(holder) && (is_listed || device.unattributed_bytes > 0);
    const bool is_waited_for = what_.is_gone && is_same(holder);
    if (counts) ++in_the_way;
    out.holders.push_back({holder, one.device, bytes, counts || is_waited_for || lacks});
  };
  for (const LedgerLine& line : one.lines) add(line.holder, line.bytes, true);
  for (const Holder& holder : one.not_listed) add(holder, std::nullopt, false);
  if (in_the_way > 0)
    out.unmet.push_back(fmt::format("{}: {} it", name,
                                    in_the_way == 1 ? "1 process uses" : fmt::format("{} processes use", in_the_way)));
  else if (what_.is_empty && !what_.names_processes() && device.unattributed_bytes > 0)
    out.unmet.push_back(
        fmt::format("{}: {} in use that no process holds", name, format_bytes(device.unattributed_bytes)));
}

/// The processes that have not gone: alive, or ended and still listed by the driver on any GPU.
void Waiting::add_alive(const Ledger& ledger, WaitLook& out) const {
  for (const auto& [pid, start_ticks] : starts_) {
    const bool is_alive = start_of_(pid) == start_ticks;
    const DeviceLedger* listed = nullptr;
    const Holder* its = nullptr;
    for (const DeviceLedger& one : ledger.devices)
      for (const LedgerLine& line : one.lines)
        if (line.holder.info.pid == pid && line.holder.info.start_ticks == start_ticks) {
          listed = &one;
          its = &line.holder;
        }
    if (listed == nullptr && !is_alive) continue;
    out.unmet.push_back(is_alive ? fmt::format("pid {} has not ended", pid)
                                 : fmt::format("pid {} has ended, but the driver still lists it on {}", pid,
                                               device_words(listed->device)));
    const auto is_it = [&, number = pid](const WaitHolder& h) { return h.holder.info.pid == number; };
    if (std::any_of(out.holders.begin(), out.holders.end(), is_it)) continue;
    WaitHolder one;
    if (its != nullptr) {
      one.holder = *its;
      one.device = listed->device;
    } else {
      one.holder.info.pid = pid;
      one.holder.info.start_ticks = start_ticks;
      one.holder.why = "it runs, and holds no GPU memory that the driver lists";
    }
    one.is_in_the_way = true;
    out.holders.push_back(std::move(one));
  }
}

Result<WaitLook> Waiting::look(const Ledger& ledger) {
  std::vector<const DeviceLedger*> devices;
  for (const DeviceLedger& one : ledger.devices)
    if (is_meant(one)) devices.push_back(&one);
  if (is_first_) {
    if (const Status possible = check(devices); !possible) return tl::unexpected(possible.error());
    remember_starts(ledger);
    is_first_ = false;
  }
  WaitLook out;
  for (const DeviceLedger* one : devices) add_device(*one, out);
  // A GPU that a later look does not find (the driver is being reloaded) is not known to be free.
  for (const std::string& gpu : what_.gpus)
    if (!is_among(devices, gpu)) out.unmet.push_back(fmt::format("GPU {} does not answer", gpu));
  if (devices.empty() && what_.gpus.empty() && (what_.free_bytes || what_.is_empty))
    out.unmet.emplace_back("no GPU answers");
  if (what_.is_gone) add_alive(ledger, out);
  order(out.holders,
        [](const WaitHolder& a, const WaitHolder& b) { return a.bytes.value_or(0) > b.bytes.value_or(0); });
  return out;
}

}  // namespace vramtrack

#include "live/ledger_reader.hpp"

#include <unistd.h>

#include <utility>

#include "host/process.hpp"
#include "live/clock.hpp"

namespace vramtrack {

LedgerReader::LedgerReader(const SourcesConfig& config, Warn warn)
    : config_(config),
      warn_(std::move(warn)),
      sources_(open_live_sources(config, catalog_, reasons_)),
      walls_(config) {}

Ledger LedgerReader::look() {
  Batch batch;
  for (LiveSource& source : sources_) poll_live(source, time_of_day(), batch, warn_);
  walls_.look();
  walls_.take(batch);
  const std::set<std::uint32_t> listed = listed_pids(batch, catalog_);
  HoldersFound found = find_holders(config_.proc_root, listed);
  // Querying the driver opens its files in this process, too.
  const auto self = static_cast<std::uint32_t>(::getpid());
  if (!listed.contains(self)) std::erase_if(found.holders, [self](const Holder& h) { return h.info.pid == self; });
  Ledger ledger = make_ledger(batch, catalog_, found, config_.proc_root, config_.sys_root);
  for (DeviceLedger& one : ledger.devices)
    for (LedgerLine& line : one.lines) {
      ProcessInfo info = line.holder.info;
      if (info.start_ticks == 0) continue;
      // Only the driver knows whether it is a client of MPS.
      if (const ProcessInfo* listed_as = catalog_.process({info.pid, info.start_ticks, {}}))
        info.kind = listed_as->kind;
      line.walls = walls_.of(info, devices(), one.device.id);
    }
  return ledger;
}

std::vector<Wall> LedgerReader::own_walls(const std::string& device_id) {
  const auto self = read_process(config_.proc_root, static_cast<std::uint32_t>(::getpid()));
  return self ? walls_.of(*self, devices(), device_id) : std::vector<Wall>();
}

}  // namespace vramtrack

#include "live/ledger_reader.hpp"

#include <unistd.h>

#include <utility>

#include "live/clock.hpp"

namespace vramtrack {

LedgerReader::LedgerReader(const SourcesConfig& config, Warn warn)
    : config_(config), warn_(std::move(warn)), sources_(open_live_sources(config, catalog_, reasons_)) {}

Ledger LedgerReader::look() {
  Batch batch;
  for (LiveSource& source : sources_) poll_live(source, time_of_day(), batch, warn_);
  const std::set<std::uint32_t> listed = listed_pids(batch, catalog_);
  HoldersFound found = find_holders(config_.proc_root, listed);
  // Asking the driver opens its files in this process too.
  const auto self = static_cast<std::uint32_t>(::getpid());
  if (!listed.contains(self)) std::erase_if(found.holders, [self](const Holder& h) { return h.info.pid == self; });
  return make_ledger(batch, catalog_, found, config_.proc_root, config_.sys_root);
}

}  // namespace vramtrack

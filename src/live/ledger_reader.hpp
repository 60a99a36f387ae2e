// LedgerReader: the ledger of this machine, read as often as asked.
#pragma once

#include <string>
#include <vector>

#include "core/config.hpp"
#include "live/ledger.hpp"
#include "live/sources.hpp"

namespace vramtrack {

/// Opens the live sources once. Of one thread.
class LedgerReader {
 public:
  /// `config` must outlive it; `warn` is told what hinders a source, each thing once.
  LedgerReader(const SourcesConfig& config, Warn warn);

  /// False: no source has anything to read here; the reasons are in one line.
  [[nodiscard]] bool is_open() const { return !sources_.empty(); }
  [[nodiscard]] const std::string& reasons() const { return reasons_; }

  /// Who holds what now, without this process unless the driver lists it. Cost: one poll and find_holders().
  Ledger look();

  /// What the sources know about devices and processes so far.
  [[nodiscard]] const Catalog& catalog() const { return catalog_; }

 private:
  const SourcesConfig& config_;
  Warn warn_;
  Catalog catalog_;
  std::string reasons_;
  std::vector<LiveSource> sources_;
};

}  // namespace vramtrack

// LedgerReader: the ledger of this machine, read as often as asked.
#pragma once

#include <string>
#include <vector>

#include "core/config.hpp"
#include "live/known_walls.hpp"
#include "live/ledger.hpp"
#include "live/sources.hpp"

namespace vramtrack {

/// Opens the live sources once. Of one thread.
class LedgerReader {
 public:
  /// `config` must outlive it; `warn` gets what prevents a source from being read, each reason once.
  LedgerReader(const SourcesConfig& config, Warn warn);

  /// False: no source has anything to read here; the reasons are in one line.
  [[nodiscard]] bool is_open() const { return !sources_.empty(); }
  [[nodiscard]] const std::string& reasons() const { return reasons_; }

  /// Who holds what now and where it ends, without this process unless the driver lists it. Cost: one poll,
  /// find_holders(), and WallReader's for each process that the driver lists.
  Ledger look();

  /// The limits that others have set for this process, and so for what it starts, on a GPU.
  std::vector<Wall> own_walls(const std::string& device_id);

  /// What the sources know about devices and processes so far.
  [[nodiscard]] const Catalog& catalog() const { return catalog_; }

 private:
  [[nodiscard]] std::vector<DeviceInfo> devices() const {
    return {catalog_.devices().begin(), catalog_.devices().end()};
  }

  const SourcesConfig& config_;
  Warn warn_;
  Catalog catalog_;
  std::string reasons_;
  std::vector<LiveSource> sources_;
  KnownWalls walls_;
};

}  // namespace vramtrack

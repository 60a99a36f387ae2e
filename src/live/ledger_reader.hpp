// LedgerReader: the ledger of this machine, read as often as requested.
#pragma once

#include <string>
#include <vector>

#include "core/config.hpp"
#include "live/known_walls.hpp"
#include "live/ledger.hpp"
#include "live/sources.hpp"

namespace vramtrack {

/// Opens the live sources once. For one thread.
class LedgerReader {
 public:
  /// `config` must outlive it; `warn` gets the reasons why sources cannot be read, each once.
  LedgerReader(const SourcesConfig& config, Warn warn);

  /// False if no source has anything to read here; the reasons are in one line.
  [[nodiscard]] bool is_open() const { return !sources_.empty(); }
  [[nodiscard]] const std::string& reasons() const { return reasons_; }

  /// Who holds what now and where it ends, without this process unless the driver lists it. Cost: one poll,
  /// find_holders(), and WallReader's for each process that the driver lists.
  Ledger look();

  /// The limits that others have set on a GPU for this process, and so for the programs that it starts.
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

// Ledger: who holds what of each GPU now: used memory = processes + driver + unattributed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/sample.hpp"
#include "core/series.hpp"
#include "host/holders.hpp"

namespace vramtrack {

/// A process that the driver lists on one GPU.
struct LedgerLine {
  Holder holder;
  std::optional<std::uint64_t> bytes;  ///< empty: the driver does not tell how much it holds
};

/// One GPU. used_bytes = process_bytes + driver_bytes + unattributed_bytes, unless processes share memory: then they
/// hold more together than is in use, and the other two are 0.
struct DeviceLedger {
  DeviceInfo device;
  std::optional<std::uint64_t> used_bytes;  ///< empty: the driver does not tell; driver and unattributed are 0 then
  std::uint64_t process_bytes = 0;
  /// What the driver may need for contexts and page tables: at most core/driver_share of what processes do not hold.
  std::uint64_t driver_bytes = 0;
  std::uint64_t unattributed_bytes = 0;
  std::size_t without_bytes = 0;   ///< processes whose memory the driver does not tell
  std::vector<LedgerLine> lines;   ///< the largest first
  std::vector<Holder> not_listed;  ///< they have this GPU open, and the driver does not list them
};

struct Ledger {
  std::vector<DeviceLedger> devices;  ///< in the order of the catalog
  /// They have files of a GPU open that belong to no device of this ledger, or to all of them (/dev/nvidiactl).
  std::vector<Holder> elsewhere;
  std::size_t not_inspected = 0;  ///< processes of other users that could not be inspected
};

/// The pids that `batch` (one poll of the live sources) and `catalog` have processes of.
std::set<std::uint32_t> listed_pids(const Batch& batch, const Catalog& catalog);

/// The ledger of one poll. `found` is find_holders() of listed_pids(); `sys_root` and `proc_root` tell which file
/// belongs to which GPU. A GPU of which nothing
/// could be read is left out. O(samples + holders * devices).
Ledger make_ledger(const Batch& batch, const Catalog& catalog, const HoldersFound& found, const std::string& proc_root,
                   const std::string& sys_root);

/// The same as text for people (printable, ends with a newline), and as one JSON document, schema
/// "vramtrack.holders.v1" (docs/holders.md). Pure.
std::string ledger_text(const Ledger& ledger);
std::string ledger_json(const Ledger& ledger);

}  // namespace vramtrack

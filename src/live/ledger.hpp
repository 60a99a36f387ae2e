// Ledger: who holds how much of each GPU now: used memory = processes + driver + unattributed.
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
#include "host/walls.hpp"
#include "live/known_walls.hpp"

namespace vramtrack {

/// The memory that a line of a program's code holds, of what it has allocated since that is recorded.
struct LedgerSite {
  std::string site;  ///< "train.py:57 train_step"
  std::uint64_t bytes = 0;
};

/// A process that the driver lists on one GPU.
struct LedgerLine {
  Holder holder;
  std::optional<std::uint64_t> bytes;  ///< empty: the driver does not report how much it holds
  std::vector<Wall> walls;             ///< limits on its memory of this GPU that others have set
  std::vector<LedgerSite> sites;       ///< of the whole process, the largest first; empty: not recorded
};

/// One GPU. used_bytes = process_bytes + driver_bytes + unattributed_bytes, unless processes share memory: then they
/// hold more together than is in use, and the other two are 0.
struct DeviceLedger {
  DeviceInfo device;
  std::optional<std::uint64_t> used_bytes;  ///< empty: not reported by the driver; driver and unattributed are 0 then
  std::uint64_t reserved_bytes = 0;         ///< memory that the driver keeps besides used_bytes, if it reports it
  std::uint64_t process_bytes = 0;
  /// What the driver may need for contexts and page tables: at most core/driver_share, of what processes do not hold.
  std::uint64_t driver_bytes = 0;
  std::uint64_t unattributed_bytes = 0;
  std::size_t without_bytes = 0;   ///< processes whose memory the driver does not report
  std::vector<LedgerLine> lines;   ///< the largest first
  std::vector<Holder> not_listed;  ///< they have this GPU open, but the driver does not list them
};

struct Ledger {
  std::vector<DeviceLedger> devices;  ///< in the order of the catalog
  /// They have GPU files open that belong to no device of this ledger, or to all devices (/dev/nvidiactl).
  std::vector<Holder> elsewhere;
  std::size_t not_inspected = 0;  ///< processes of other users that could not be inspected
};

/// The processes of a GPU that the driver lists, with their walls; in the order of its lines.
std::vector<Walled> walled_lines(const DeviceLedger& one);

/// The pids of the processes in `batch` (one poll of the live sources) and `catalog`.
std::set<std::uint32_t> listed_pids(const Batch& batch, const Catalog& catalog);

/// The ledger of one poll. `found` is find_holders() of listed_pids(); `sys_root` and `proc_root` show which
/// file belongs to which GPU. A GPU that could not be read at all is omitted. O(samples + holders *
/// devices).
Ledger make_ledger(const Batch& batch, const Catalog& catalog, const HoldersFound& found, const std::string& proc_root,
                   const std::string& sys_root);

/// The same as text for people (printable, ends with a newline), and as one JSON document, schema
/// "vramtrack.holders.v1" (docs/holders.md). Pure.
std::string ledger_text(const Ledger& ledger);
std::string ledger_json(const Ledger& ledger);

}  // namespace vramtrack

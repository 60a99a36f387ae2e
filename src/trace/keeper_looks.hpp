// KeeperLooks: what keeps the blocks of a process, as found by searches ("looks") within its own Python (Record::kept).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/call_site.hpp"
#include "trace/process_names.hpp"

namespace vramtrack::trace {

/// An object that keeps blocks, as one look in the program found it.
struct FoundKeeper {
  std::string words;             ///< "losses (list, 406 items), local of train() at train.py:16"; untrusted
  bool is_rooted = false;        ///< it leads to a variable
  bool has_graphs = false;       ///< some of it has a graph, which keeps blocks without a Python object
  std::uint64_t blocks = 0;      ///< number of the site's blocks that the look named (a sample)
  std::uint64_t looked_us = 0;   ///< when the look began
  Held stands_for;               ///< the part of the site that it keeps, estimated from the sample
  std::int64_t live_blocks = 0;  ///< the live blocks of the site when the look ended
  std::uint64_t first_us = 0, middle_us = 0, last_us = 0;  ///< when the blocks of the sample were allocated
};

/// What else the newest look shows about a site's blocks.
struct SiteLook {
  std::int64_t live_blocks = 0;  ///< the live blocks of the site at that moment
  /// Blocks with a Python object (a sample): no referrer was found, or the search did not cover it.
  std::uint64_t unheld = 0, unasked = 0;
};

/// The end of a look, that is, of one search for what keeps memory.
struct KeptLook {
  std::uint64_t time_us = 0;
  bool was_made = false;  ///< false: it was refused
  std::string why;        ///< why it was refused or is incomplete; empty: it is complete
};

class KeeperLooks {
 public:
  /// Takes a record of the open look other than its end. `cell`: the block that it names; null if unknown.
  void take(const probe::Slot& slot, const LiveCell* cell);
  /// Ends the open look. A look that the end of the trace cuts off does not count.
  void end(const probe::Slot& slot, const std::vector<CallSite>& sites, const ProcessNames& names);

  /// The keepers of each call site's blocks, from the newest look that found any: first those that lead to a variable,
  /// then by what they keep. Of several keepers of the same blocks, only one is listed.
  [[nodiscard]] const std::map<std::uint32_t, std::vector<FoundKeeper>>& keepers() const { return keepers_; }
  /// REQUIRES: last().
  [[nodiscard]] SiteLook of_site(std::size_t site) const { return site < sites_.size() ? sites_[site] : SiteLook{}; }
  /// The newest look; nullopt if none was requested or none ended.
  [[nodiscard]] const std::optional<KeptLook>& last() const { return last_; }

 private:
  /// A block that the open look named.
  struct KeptBlock {
    std::uint32_t text = 0, site = 0;
    std::uint8_t flags = 0;
    std::uint64_t address = 0, time_us = 0;
    Held held;
    std::uint64_t all_bytes = 0;  ///< all bytes that its keeper keeps
  };
  void take_in(std::uint64_t begun_us, const std::vector<CallSite>& sites, const ProcessNames& names);

  std::vector<KeptBlock> open_;
  std::vector<SiteLook> sites_;
  std::map<std::uint32_t, std::vector<FoundKeeper>> keepers_;
  std::optional<KeptLook> last_;
};

}  // namespace vramtrack::trace

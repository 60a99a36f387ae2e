// KeeperLooks: what keeps the blocks of a process, as its own Python found it at its looks (Record::kept).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/call_site.hpp"
#include "trace/process_names.hpp"

namespace vramtrack::trace {

/// What keeps blocks, as the program found it at one look.
struct FoundKeeper {
  std::string words;            ///< "losses (list, 406 items), local of train() at train.py:16"; untrusted
  bool is_rooted = false;       ///< it leads to a variable
  bool has_graphs = false;      ///< some of what it keeps has a graph, which keeps blocks that Python has no object for
  std::uint64_t blocks = 0;     ///< of the site, of those that the look named: a sample
  std::uint64_t looked_us = 0;  ///< when the look began
  Held stands_for;              ///< what it keeps of the site, estimated from the sample
  std::int64_t live_blocks = 0;                            ///< the live blocks of the site when the look ended
  std::uint64_t first_us = 0, middle_us = 0, last_us = 0;  ///< when the blocks of the sample were allocated
};

/// What the newest look shows of a site's blocks besides.
struct SiteLook {
  std::int64_t live_blocks = 0;  ///< the live blocks of the site at that moment
  /// Blocks that Python has an object for (a sample): nothing was found to refer to it, or it was not asked about.
  std::uint64_t unheld = 0, unasked = 0;
};

/// The end of a look at what keeps memory.
struct KeptLook {
  std::uint64_t time_us = 0;
  bool was_made = false;  ///< false: it was refused
  std::string why;        ///< it was refused, or is not complete; empty: it is
};

class KeeperLooks {
 public:
  /// A record of the open look that is not its end. `cell`: the block that it names; null: it is not known.
  void take(const probe::Slot& slot, const LiveCell* cell);
  /// The end of the open look. A look that is cut off by the end of the trace is none.
  void end(const probe::Slot& slot, const std::vector<CallSite>& sites, const ProcessNames& names);

  /// By call site: what keeps its blocks, by the newest look that found any; first what leads to a variable, and of
  /// that what keeps most. Of several that keep the same blocks it is one.
  [[nodiscard]] const std::map<std::uint32_t, std::vector<FoundKeeper>>& keepers() const { return keepers_; }
  /// REQUIRES: last().
  [[nodiscard]] SiteLook of_site(std::size_t site) const { return site < sites_.size() ? sites_[site] : SiteLook{}; }
  /// The newest one. nullopt: none was asked for, or none ended.
  [[nodiscard]] const std::optional<KeptLook>& last() const { return last_; }

 private:
  /// A block that the open look named.
  struct KeptBlock {
    std::uint32_t text = 0, site = 0;
    std::uint8_t flags = 0;
    std::uint64_t address = 0, time_us = 0;
    Held held;
    std::uint64_t all_bytes = 0;  ///< that its keeper keeps
  };
  void take_in(std::uint64_t begun_us, const std::vector<CallSite>& sites, const ProcessNames& names);

  std::vector<KeptBlock> open_;
  std::vector<SiteLook> sites_;
  std::map<std::uint32_t, std::vector<FoundKeeper>> keepers_;
  std::optional<KeptLook> last_;
};

}  // namespace vramtrack::trace

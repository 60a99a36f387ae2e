// RecentGrowth: finds sites of a running program that began to grow a short while ago, however long the program ran
// well before. The judgement of a whole run (site_growth.hpp) cannot detect this yet, because there half a minute at
// the end of an hour is negligible. Pure: no clock, no I/O.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/address_table.hpp"
#include "trace/survival_ledger.hpp"

namespace vramtrack::trace {

/// A site that has begun to rise.
struct RecentRise {
  SiteNumber site = 0;
  double since_s = 0;  ///< when the rise began, on the clock of the events
  std::int64_t bytes = 0, blocks = 0;
  double bytes_per_s = 0;
  double first_s = 0;  ///< time of its first allocation from then on; orders the lines of one step
};

/// Keeps the minimum that each site held in each of the last windows of 2.5 s. A site has begun to rise if, in windows
/// of 2.5, 5 or 10 s,
///   * its minimum is above that of the previous window in the last kRises completed windows, in bytes and blocks, each
///     time by at least a third of the greatest rise, and the rise at the end is at least three fifths of that at the
///     beginning (a cache that fills slows down);
///   * before that, it did not rise for as many windows, and released less than half of what it has gained;
///   * the sites that allocated in those earlier windows still allocate; otherwise the program is in another phase
///     (loading, evaluation), in which other code keeps other memory for a while;
///   * it gained kManyBlocks, or a hundredth of live memory.
/// A rise of one block every 2.5 s is reported 18 s after it began, one of a block every 10 s after a minute. A cache
/// that fills steadily for that long looks the same.
///
/// For one process. Not thread-safe. Cost: some 50 ns per event. Memory: 40 bytes per live block, up to kMostBlocks,
/// after which nothing is reported; 1.4 KiB per site, up to kMostSites; later sites are ignored.
class RecentGrowth {
 public:
  static constexpr double kWindow_s = 2.5;
  static constexpr std::size_t kWindows = 56;  ///< windows kept: a rise and the time before it, at the coarsest scale
  static constexpr std::size_t kRises = 6;
  static constexpr std::int64_t kManyBlocks = 24;
  static constexpr std::size_t kMostBlocks = std::size_t{1} << 20U;
  static constexpr std::size_t kMostSites = 4096;

  /// Times must not decrease. A live block at the address was released without a record.
  void allocate(std::uint64_t address, std::uint64_t bytes, SiteNumber site, double time_s);
  void free(std::uint64_t address, double time_s);

  /// The bytes that the site holds; 0 once nothing is reported any more.
  [[nodiscard]] std::int64_t live_bytes(SiteNumber site) const { return site < sites_.size() ? sites_[site].bytes : 0; }
  /// The sites that have begun to rise by now, each once. Evaluated at most once per kWindow_s.
  std::vector<RecentRise> rises(double now_s);

 private:
  struct Block {
    std::uint64_t address = 0, bytes = 0;
    SiteNumber site = 0;
    bool used = false;
    [[nodiscard]] bool is_used() const { return used; }
  };
  struct Window {
    std::int64_t bytes = 0, blocks = 0;  ///< the minimum
    std::uint32_t allocations = 0;
    float first_s = 0;  ///< time of the first allocation, since the window began
  };
  struct Site {
    std::array<Window, kWindows> windows;  ///< by number, modulo kWindows
    std::int64_t bytes = 0, blocks = 0;
    std::int64_t window = -1;  ///< the last filled window
    std::int64_t first = 0;    ///< the window of its first allocation
    bool is_reported = false;
  };

  Window& touch(Site& site, double time_s);
  static void fill(Site& site, std::int64_t window);
  void change(SiteNumber site, std::int64_t bytes, int blocks, double time_s);
  std::optional<RecentRise> rise_of(SiteNumber number, std::size_t joined, std::int64_t last) const;
  [[nodiscard]] std::vector<Window> joined_windows(const Site& site, std::size_t joined, std::int64_t last) const;

  AddressTable<Block> blocks_;
  std::vector<Site> sites_;  ///< by number
  std::int64_t begin_ = -1;  ///< the first window
  std::int64_t looked_ = -1;
  std::int64_t live_bytes_ = 0;
  bool is_over_ = false;  ///< there were too many blocks
};

}  // namespace vramtrack::trace

// SurvivalLedger: what each site of a running program holds, and how much of its earlier allocations is still live, in
// bounded memory however long the program runs. Pure: no clock, no I/O.
//
// Live blocks are kept in a table of limited size. While all fit, every figure is exact. After that, blocks are sampled
// by size (Poisson sampling with probability min(1, size / threshold); Horvitz and Thompson, "A generalization of
// sampling without replacement from a finite universe", 1952): each kept block stands for max(size, threshold) bytes,
// and every figure has a standard error. The sites that hold the most are sampled last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/lifetimes.hpp"
#include "trace/address_table.hpp"

namespace vramtrack::trace {

/// The caller's number for a line or a stack.
using SiteNumber = std::uint32_t;

/// What a site allocated between two times. The last cohort has not ended yet.
struct Cohort {
  double begin_s = 0, end_s = 0;
  double allocated_bytes = 0;  ///< exact, unless its blocks were sampled
  double live_bytes = 0;
};

struct SiteAccount {
  SiteNumber site = 0;
  double live_bytes = 0;
  double live_blocks = 0;
  double error_bytes = 0;  ///< standard error of live_bytes; 0: it and the cohorts are exact
  double allocated_bytes = 0;
  double last_s = 0;            ///< time of the last allocation
  std::vector<Cohort> cohorts;  ///< oldest first
};

/// For one process. Not thread-safe. Cost: some 50 ns per event, and an occasional pass over the table.
class SurvivalLedger {
 public:
  struct Limits {
    std::size_t blocks = 1U << 16;  ///< blocks kept; 40 bytes each
    std::size_t sites = 256;        ///< sites with their own account; 2 KiB each
    std::size_t top_sites = 16;     ///< of these, exact as long as half of the blocks suffice for them
  };
  /// The length of the most recent cohorts; older ones are joined in pairs.
  static constexpr double kWindow_s = 30;
  static constexpr std::size_t kMostCohorts = 64;  ///< per site

  SurvivalLedger() : SurvivalLedger(Limits{}) {}
  /// REQUIRES: each limit is at least 4.
  explicit SurvivalLedger(const Limits& limits);

  /// Times must not decrease. A live block at the address was released without a record. `sampled_below`: smaller
  /// blocks are sampled with probability bytes / sampled_below; the rest are estimated from them.
  void allocate(std::uint64_t address, std::uint64_t bytes, SiteNumber site, double time_s,
                std::uint64_t sampled_below = 0);
  /// Ignores an unknown address: it was allocated earlier, or the sample left it out.
  void free(std::uint64_t address);
  /// Forgets everything, because the process holds nothing any more (exec).
  void clear();

  /// The sites with an account, the most bytes first. O(sites).
  [[nodiscard]] std::vector<SiteAccount> accounts() const;
  /// All sites that had to make room for others, as if they were one site (its number means nothing).
  [[nodiscard]] SiteAccount rest() const { return account(rest_); }
  /// The number of sites in rest(): how often one had to make room.
  [[nodiscard]] std::uint64_t sites_in_rest() const { return evicted_; }
  [[nodiscard]] double live_bytes() const { return live_bytes_; }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }
  /// An upper bound of the memory that it currently uses.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  /// `serial`: that of its account; it no longer matches once the account has had to make room.
  struct Block {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t window = 0;  ///< the window in which it was allocated
    std::uint32_t serial = 0;
    std::uint32_t index = 0;
    float draw = 0;       ///< uniform in (0, 1]: kept while threshold * draw <= bytes
    float threshold = 0;  ///< the highest threshold that it has passed
    [[nodiscard]] bool is_used() const { return serial != 0; }
    [[nodiscard]] double stands_for() const;
  };
  struct Windows {
    std::uint32_t first = 0, last = 0;
    double allocated_bytes = 0, live_bytes = 0;
  };
  struct Account {
    SiteNumber site = 0;
    std::uint32_t serial = 0;
    bool is_top = false;
    double live_bytes = 0, live_blocks = 0, variance = 0, allocated_bytes = 0, last_s = 0;
    std::vector<Windows> windows;  ///< in order
  };

  [[nodiscard]] static SiteAccount account(const Account& account);
  static Windows& windows_at(Account& account, std::uint32_t window);
  /// Adds what `block` stands for, or subtracts it (`sign` -1).
  void count(const Block& block, double sign);
  Account& owner(const Block& block);
  std::uint32_t index_of_site(SiteNumber site);
  void make_room();
  void thin();
  void mark_top();
  double draw(std::uint64_t address);

  Limits limits_;
  AddressTable<Block> blocks_;
  std::vector<Account> accounts_;
  std::unordered_map<SiteNumber, std::uint32_t> indices_;
  Account rest_;
  float top_threshold_ = 0, threshold_ = 0;
  double live_bytes_ = 0;
  std::uint64_t evicted_ = 0;
  std::uint64_t draws_ = 0;
  std::uint32_t next_serial_ = 1;
};

/// For the judge: the cohorts joined into a few stretches, finer for recent ones. `now_s`: on the ledger's clock.
SiteLifetimes lifetimes_of(const SiteAccount& account, std::string site, double now_s);

}  // namespace vramtrack::trace

// SurvivalLedger: what each site of a running program holds, and how much of what it allocated a while ago is still
// live, in bounded memory however long the program runs. Pure: no clock, no I/O.
//
// Live blocks are kept in a table of limited size. While all fit, every figure is exact. When they no longer do, blocks
// are sampled by their size (Poisson sampling with probability min(1, size / threshold); Horvitz and Thompson, "A
// generalization of sampling without replacement from a finite universe", 1952): each that is kept stands for
// max(size, threshold) bytes, and every figure has its standard error. The sites that hold most are sampled last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/lifetimes.hpp"
#include "trace/address_table.hpp"

namespace vramtrack::trace {

/// A line or a stack: the caller's number.
using SiteNumber = std::uint32_t;

/// What the site allocated between two times. The end of the last one is still to come.
struct Cohort {
  double begin_s = 0, end_s = 0;
  double allocated_bytes = 0;  ///< exact, unless its blocks were sampled
  double live_bytes = 0;
};

struct SiteAccount {
  SiteNumber site = 0;
  double live_bytes = 0;
  double live_blocks = 0;
  double error_bytes = 0;  ///< standard error of live_bytes; 0: exact, and so are its cohorts
  double allocated_bytes = 0;
  double last_s = 0;            ///< when it allocated last
  std::vector<Cohort> cohorts;  ///< oldest first
};

/// Of one process. Not thread-safe. Cost: some 50 ns an event; now and then a pass over the table.
class SurvivalLedger {
 public:
  struct Limits {
    std::size_t blocks = 1U << 16;  ///< that are kept; 40 bytes each
    std::size_t sites = 256;        ///< with their own account; 2 KiB each
    std::size_t top_sites = 16;     ///< of these, which are exact for as long as half of the blocks suffice for them
  };
  /// The length of the youngest cohorts; older ones are joined, two by two.
  static constexpr double kWindow_s = 30;
  static constexpr std::size_t kMostCohorts = 64;  ///< of a site

  SurvivalLedger() : SurvivalLedger(Limits{}) {}
  /// REQUIRES: each limit is at least 4.
  explicit SurvivalLedger(const Limits& limits);

  /// Times must not decrease. A block that is live at the address was released, unseen. `sampled_below`: smaller
  /// blocks are sampled with probability bytes / sampled_below; the others are estimated from these.
  void allocate(std::uint64_t address, std::uint64_t bytes, SiteNumber site, double time_s,
                std::uint64_t sampled_below = 0);
  /// For an address that is not known: it was allocated before, or is one that the sample left out. Nothing happens.
  void free(std::uint64_t address);
  /// The process holds nothing any more (exec).
  void clear();

  /// Those with an account, the most bytes first. O(sites).
  [[nodiscard]] std::vector<SiteAccount> accounts() const;
  /// All that had to make room for others, as if it were one site (its number means nothing).
  [[nodiscard]] SiteAccount rest() const { return account(rest_); }
  /// Sites that are in rest(): how often one had to make room.
  [[nodiscard]] std::uint64_t sites_in_rest() const { return evicted_; }
  [[nodiscard]] double live_bytes() const { return live_bytes_; }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }
  /// An upper bound of what it takes at present.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  /// `serial`: of its account's; another one has its place when the account had to make room.
  struct Block {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t window = 0;  ///< in which it was allocated
    std::uint32_t serial = 0;
    std::uint32_t place = 0;
    float draw = 0;       ///< uniform in (0, 1]: it is kept while threshold * draw <= bytes
    float threshold = 0;  ///< the highest that it has passed
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
  /// Adds what `block` stands for, or takes it off (`sign` -1).
  void count(const Block& block, double sign);
  Account& owner(const Block& block);
  std::uint32_t place_of(SiteNumber site);
  void make_room();
  void thin();
  void mark_top();
  double draw(std::uint64_t address);

  Limits limits_;
  AddressTable<Block> blocks_;
  std::vector<Account> accounts_;
  std::unordered_map<SiteNumber, std::uint32_t> places_;
  Account rest_;
  float top_threshold_ = 0, threshold_ = 0;
  double live_bytes_ = 0;
  std::uint64_t evicted_ = 0;
  std::uint64_t draws_ = 0;
  std::uint32_t next_serial_ = 1;
};

/// For the judge: the cohorts joined to a few stretches, the younger the finer. `now_s`: on the ledger's clock.
SiteLifetimes lifetimes_of(const SiteAccount& account, std::string site, double now_s);

}  // namespace vramtrack::trace

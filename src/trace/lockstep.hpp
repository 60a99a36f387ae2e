// Lockstep: which sites hold blocks of the same steps of a program, and are therefore one leak with one keeper: the
// activations of a kept graph, its inputs and the loss that keeps them. Pure: no clock, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vramtrack::trace {

/// The blocks that a site holds at the moment that is judged.
struct SiteBlocks {
  std::vector<std::uint64_t> births_us;  ///< when each was allocated, ascending; of very many the last ones
  /// When each was released, as places in one order over all sites, ascending; empty: that was not seen.
  std::vector<std::uint32_t> deaths;
};

/// Any allocation, of which site it may be: what lies between two births.
struct Passing {
  std::uint64_t time_us = 0;
  std::uint32_t site = 0;
};

/// How one site goes with another one that holds no more blocks than it does.
struct Lockstep {
  bool is_together = false;
  std::size_t in_step = 0;  ///< blocks of the site to one of the other; 0: there is no such number
  bool follows = false;     ///< in a step it is allocated after the other one
};

/// With fewer steps, an order as regular as one that is asked for comes by chance in more than 1 of 400 pairs
/// (2 orders of C(12, 6): the longest sequences of the test of runs by Wald and Wolfowitz, 1940).
inline constexpr std::size_t kLeastSteps = 6;

/// Whether `site` and `rare` hold blocks of the same steps:
///   * births: from each block of `rare` to its next, `site` adds the same number, in nine of ten steps, and
///     next to nothing before the first and after the last;
///   * the same steps: what else the program allocates (`passing`: its last allocations, in order) between the two is
///     not what it allocates from there to the next step, as it is if each has its own step;
///   * several in a step: they come in a burst, as those of the layers of a model. A site of each step and one of each
///     epoch do not;
///   * deaths, if they were seen: if all blocks of one site (100 or more) went before all of the other, two owners had
///     them. If they went step by step, the two rules before are not asked.
/// REQUIRES: rare.births_us.size() <= site.births_us.size(). Cost: O(blocks + passing).
Lockstep lockstep_of(const SiteBlocks& site, const SiteBlocks& rare, std::span<const Passing> passing);

struct LockstepGroup {
  std::vector<std::size_t> sites;  ///< in the order in which a step allocates them
  std::size_t steps = 0;           ///< from which it holds blocks
};
/// Every site is in one group, most of them alone.
std::vector<LockstepGroup> lockstep_groups(std::span<const SiteBlocks> sites, std::span<const Passing> passing);

}  // namespace vramtrack::trace

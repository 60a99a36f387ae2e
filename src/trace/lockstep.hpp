// Lockstep: which sites hold blocks of the same steps of a program, and are therefore one leak with one keeper: the
// activations of a kept graph, its inputs and the loss that keeps them. Pure: no clock, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vramtrack::trace {

/// The blocks that a site holds at the moment under consideration.
struct SiteBlocks {
  std::vector<std::uint64_t> births_us;  ///< allocation times, ascending; if very many, only the last ones
  /// Release of each, as positions in one order over all sites, ascending; empty if not recorded.
  std::vector<std::uint32_t> deaths;
};

/// Any allocation of any site, to compare the code that runs between two births.
struct Passing {
  std::uint64_t time_us = 0;
  std::uint32_t site = 0;
};

/// How one site keeps step with another that holds no more blocks.
struct Lockstep {
  bool is_together = false;
  std::size_t in_step = 0;  ///< blocks of the site per block of the other; 0: there is no such number
  bool follows = false;     ///< within a step, it allocates after the other
};

/// With fewer steps, an order as regular as required occurs by chance in more than 1 of 400 pairs (2 orders of C(12,
/// 6): the longest sequences of the test of runs by Wald and Wolfowitz, 1940).
inline constexpr std::size_t kLeastSteps = 6;

/// Whether `site` and `rare` hold blocks of the same steps:
///   * births: from each block of `rare` to its next, `site` adds the same number, in nine of ten steps, and
///     next to nothing before the first and after the last;
///   * the same steps: the program's other allocations between the two (`passing`: its last allocations, in order)
///     differ from those from there to the next step; they do not if each has its own step;
///   * several in a step: they come in a burst, like those of a model's layers. A site of each step and one of each
///     epoch do not;
///   * deaths, if recorded: if all blocks of one site (100 or more) were freed before all of the other, they had two
///     owners. If they were freed step by step, the two previous rules do not apply.
/// REQUIRES: rare.births_us.size() <= site.births_us.size(). Cost: O(blocks + passing).
Lockstep lockstep_of(const SiteBlocks& site, const SiteBlocks& rare, std::span<const Passing> passing);

struct LockstepGroup {
  std::vector<std::size_t> sites;  ///< in the order in which a step allocates them
  std::size_t steps = 0;           ///< number of steps from which it holds blocks
};
/// Every site is in one group, most of them alone.
std::vector<LockstepGroup> lockstep_groups(std::span<const SiteBlocks> sites, std::span<const Passing> passing);

}  // namespace vramtrack::trace

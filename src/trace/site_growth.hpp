// Judges which sites grow, by a program's own events or epochs rather than by minutes, so that short runs count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vramtrack::trace {

/// The minimum that a site held during one stretch of the run.
struct Floor {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
};

/// How the memory of a site changes over the run.
enum class SiteShape : std::uint8_t {
  flat,        ///< its floors do not rise: churn, or memory held from the start
  warm_up,     ///< it rose early and stopped
  filling,     ///< it still rises, but ever more slowly: a cache that fills
  given_back,  ///< it rose and fell: memory that an epoch keeps until its end
  unsure,      ///< it rose, but no more than chance or too few blocks allow
  late,        ///< it began to rise late and rises to the end: a leak, or a last step that needs more (rises_late())
  leak,        ///< it rises to the end
};
std::string_view shape_name(SiteShape shape);

struct SiteJudgement {
  SiteShape shape = SiteShape::flat;
  std::int64_t growth_bytes = 0;  ///< from the first judged floor to the last
  std::int64_t growth_blocks = 0;
  std::int64_t least_growth_bytes = 0;  ///< lower bound of the growth over the second half
  double p_value = 1;                   ///< probability of such an order of the floors by chance, for this site alone
};

/// The share of healthy programs in which any site may be reported.
inline constexpr double kSiteErrorRate = 0.01;
/// The number of stretches that a run is divided into; the first sixth is its start and is not judged.
inline constexpr std::size_t kRunParts = 12;
/// With fewer floors, nothing can be shown at the error rate.
inline constexpr std::size_t kLeastParts = 6;
/// The fewest epochs, marked by the program, that are enough.
inline constexpr std::size_t kLeastEpochs = 3;

/// Judges all sites of a program together: `sites[i]` has the floors of one site in equal stretches of the run, oldest
/// first; all have the same size. A site leaks if
///   * its floors rise, according to the exact one-sided test of Mann (1945) and Kendall (1975), at an error rate of
///     kSiteErrorRate over all sites of the program, which is kept by the step-down procedure of
///     Holm (1979);
///   * the rise continues: the lower bound of the growth over the second half is greater than zero;
///   * at least as many blocks stay as there are floors, or one block is repeatedly replaced by a larger one;
///   * the rise is as fast at the end as at the beginning, as far as counts can show, and the memory was never freed.
/// Pure. Cost: O(sites * floors^2).
std::vector<SiteJudgement> judge_stretches(std::span<const std::vector<Floor>> sites);

/// The same over epochs that the program marked, with one floor per epoch. Fewer than kLeastParts epochs cannot pass
/// the test; then a site leaks if it rises in every epoch by more blocks than it releases from earlier epochs.
/// `returned[i]`: blocks of earlier epochs that site i released.
std::vector<SiteJudgement> judge_epochs(std::span<const std::vector<Floor>> sites,
                                        std::span<const std::uint64_t> returned);

/// Whether a site that is not a leak yet began to rise in the second half of the run and still rises at its end: at
/// least the last kLeastLateRises floors are each above the one before. In all, it rises by at least kLeastParts
/// blocks, by more than before, and by more than twice what it ever released. `floors`: those of the whole run at the
/// finest known resolution, oldest first. Unlike for a leak, the error rate is not bounded: this is a suspicion. Pure.
bool rises_late(std::span<const Floor> floors);
inline constexpr std::size_t kLeastLateRises = 3;

/// Joins `floors` (at least one) into at most `parts` of nearly equal length: the minimum of each.
std::vector<Floor> joined_floors(std::span<const Floor> floors, std::size_t parts);

}  // namespace vramtrack::trace

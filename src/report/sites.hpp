// SitesReport: the lines of a program under `vramtrack run` that keep GPU memory, as its run reports them
// ("vramtrack.trace_report.v1", docs/trace.md), cut to what a screen and a client need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/view.hpp"

namespace vramtrack {

struct SiteFrame {
  std::string function;
  std::string file;
  std::uint32_t line = 0;
  bool python = false;
  friend bool operator==(const SiteFrame&, const SiteFrame&) = default;
};

struct MemorySite {
  bool leak = false;
  std::string site;  ///< "train.py:57 train_step"
  std::string call;  ///< "cuMemAlloc"
  std::int64_t live_bytes = 0;
  std::int64_t live_count = 0;
  double growth_bytes_per_s = 0;
  double oldest_s = 0;
  double share = 0;  ///< the share of the growth of all sites
  std::vector<SiteFrame> frames;
  friend bool operator==(const MemorySite&, const MemorySite&) = default;
};

struct SitesReport {
  std::string program;
  double duration_s = 0;
  bool leak = false;
  bool suspected = false;  ///< nothing leaks; the first site began to grow late and grows to the end
  bool can_tell = false;   ///< whether there were enough events
  std::string because;
  std::string next_step;
  double growth_bytes_per_s = 0;  ///< the growth of the leaking sites
  bool residual_grows = false;
  std::optional<std::int64_t> residual_bytes;
  std::vector<std::string> notes;
  std::vector<MemorySite>
      sites;  ///< the leaking first, the most growth first; the suspected; then the most bytes first
  std::size_t sites_left_out = 0;
  friend bool operator==(const SitesReport&, const SitesReport&) = default;
};

/// The lines of a process whose allocations are traced, as the view has them: the fastest growing first. If its memory
/// leaks, the first of them is the leaking line.
SitesReport sites_of(const SeriesView& series);

/// What is currently known about the sites of a process.
struct SitesNow {
  enum class State : std::uint8_t {
    unknown,     ///< no answer yet
    not_probed,  ///< it does not run under `vramtrack run`, or the client may not see it
    not_yet,     ///< it does, but there is no report yet
    known,
  };
  State state = State::unknown;
  SitesReport report{};  ///< if it is known
};

// Limits on the part of a report that is kept. A program chooses its names: each is truncated, as is their sum.
inline constexpr std::size_t kMostLeakingSites = 100;
inline constexpr std::size_t kMostOtherSites = 20;  ///< those that hold most
inline constexpr std::size_t kMostSiteFrames = 64;  ///< the innermost
inline constexpr std::size_t kMostNameBytes = 512;
inline constexpr std::size_t kMostSitesBytes = 512 * 1024;

/// Truncated as described above. An error if it is not such a report.
Result<SitesReport> parse_sites_json(std::string_view text);
/// "vramtrack.trace_report.v1" again, with "sites_left_out". Names are printable.
std::string sites_json(const SitesReport& report);

}  // namespace vramtrack

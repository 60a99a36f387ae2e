// TraceReport: the result of a trace: which lines keep memory, which of them leak, and what else is known.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/category.hpp"
#include "trace/probe_names.hpp"
#include "trace/probe_trace.hpp"
#include "trace/profile.hpp"
#include "trace/site_growth.hpp"

namespace vramtrack::trace {

/// All stacks of one line in one memory space, over all processes.
struct ReportSite {
  StackId stack = kNoStack;  ///< of its stacks the one that grew most, else the one that holds most
  SiteLine line;
  std::string_view call;                  ///< of that stack: "cuMemAlloc"
  Category category = Category::unknown;  ///< of that stack
  std::string thread;                     ///< of that stack, where no frame of it is the user's own: "pt_autograd_0"
  MemorySpace space = MemorySpace::device;
  std::uint64_t stacks = 0;
  bool leak = false;
  bool suspected = false;  ///< no leak yet: it gained most of what its memory space gained lately, and rises to the end
  SiteShape shape = SiteShape::flat;
  Held live;
  Held at_exit;
  std::int64_t growth_bytes = 0;
  std::int64_t growth_blocks = 0;
  double growth_bytes_per_s = 0;
  double p_value = 1;
  double oldest_s = 0;  ///< age of its oldest live block
  double share = 0;     ///< of the growth of all sites of the memory space; 0 where it does not grow
  std::vector<std::uint32_t> pids;
  std::optional<FoundKeeper> keeper;  ///< what keeps its blocks, as the program found it
  SiteLook look;                      ///< what else the newest look shows of them
  /// Not empty: several variables keep what the line allocated, and this is what one of them keeps, estimated from the
  /// sample of the look. Its name, without numbers.
  std::string part;
  std::optional<std::size_t> finding;  ///< its place in TraceReport::findings
};

/// A leak, or a suspected one: sites that hold blocks of the same steps (lockstep.hpp), unless the program's look found
/// several variables that keep them: each of these is a finding.
struct Finding {
  std::vector<std::size_t> sites;  ///< places in TraceReport::sites, side by side; the one that probably keeps is first
  bool leak = false;               ///< else suspected
  Held live;
  std::uint64_t steps = 0;  ///< of which it holds blocks; 0: it has one site
  double growth_bytes_per_s = 0;
  double share = 0;  ///< of the growth of all sites of the memory space
  double oldest_s = 0;
  std::optional<FoundKeeper> keeper;  ///< of its first site: the variable that keeps what it holds
  std::string why_no_keeper;          ///< where there is none: "Python was not asked: it is switched off"
};

struct ReportProcess {
  std::uint32_t pid = 0;
  std::string command;
  std::uint64_t events = 0;
  std::array<std::int64_t, kMemorySpaces> live_bytes{};
  std::int64_t peak_bytes = 0;
  std::int64_t cached_bytes = 0;
  Held freed_of_before;  ///< see ProcessTrace::freed_of_before()
  std::uint64_t leaking_sites = 0;
  std::uint64_t epochs = 0;
  std::string epoch_name;
  bool can_tell = false;  ///< it has events enough
};

struct TraceReport {
  std::string program;
  double duration_s = 0;
  bool leak = false;
  bool suspected = false;  ///< where nothing leaks: a site is suspected
  /// Where nothing leaks and no site is suspected: a site with much of the growth rose, by too little to judge.
  bool undecided = false;
  bool can_tell = false;
  std::string because;
  std::string next_step;
  double growth_bytes_per_s = 0;  ///< the growth of the leaking sites
  std::optional<std::int64_t> residual_bytes;
  bool residual_grows = false;
  double residual_bytes_per_s = 0;
  std::vector<Finding> findings;  ///< the leaks first, the most growth first; then the suspected, the most bytes first
  std::vector<ReportSite> sites;  ///< those of the findings, in their order; then the others, the most bytes first
  std::vector<ReportProcess> processes;
  std::array<std::int64_t, kMemorySpaces> live_bytes{};
  std::int64_t cached_bytes = 0;
  CategoryTotals categories;  ///< of the live bytes of device memory
  /// The same by the call that allocated them, the most bytes first: "cuMemAllocManaged", "memory of CUDA graphs".
  std::vector<std::pair<std::string_view, Held>> calls;
  /// The same by the library, or the program, that made the call: "libggml-cuda.so".
  std::vector<std::pair<std::string_view, Held>> libraries;
  bool has_native_exit = false;  ///< a program without Python ended in order: what it still held is reported
  std::uint64_t suppressed_sites = 0;
  std::vector<std::string> notes;
};

/// Patterns of sites that are known and accepted; '*' matches anything. A site is suppressed if any of its frames has a
/// function or file that a pattern matches as a whole.
class Suppressions {
 public:
  /// One pattern a line; empty lines and lines that begin with '#' are skipped; "leak:" before a pattern is allowed.
  static Suppressions parse(std::string_view text);
  [[nodiscard]] bool matches(const Symbols& symbols, StackId stack) const;
  [[nodiscard]] bool empty() const { return patterns_.empty(); }

 private:
  std::vector<std::string> patterns_;
};
/// '*' matches any text, all else itself.
bool matches_pattern(std::string_view pattern, std::string_view text);

/// What to do about a leak: what to bound, or, if its keeper is not known, to look for it.
std::string advice_on(const Finding& finding);

/// REQUIRES: trace.finish().
TraceReport report_of(const ProbeTrace& trace, ProbeNames& names, const Suppressions& suppressions = {});

/// Live bytes of one memory space by stack, over all processes: at the moment that is shown, or at `moment` (index into
/// the moments that were asked for) where it is set.
Profile profile_of(const ProbeTrace& trace, ProbeNames& names, MemorySpace space,
                   std::optional<std::size_t> moment = {});
/// Live bytes of device memory by category: as reported by the program, otherwise by their stacks.
CategoryTotals categories_of(const ProbeTrace& trace, ProbeNames& names, StackCategories& stacks);
/// By stack `to` minus `from`.
Profile difference(const Profile& from, const Profile& to);

}  // namespace vramtrack::trace

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
  StackId stack = kNoStack;  ///< its stack that grew the most, else the one that holds the most
  SiteLine line;
  std::string_view call;                  ///< the call of that stack, such as "cuMemAlloc"
  Category category = Category::unknown;  ///< the category of that stack
  std::string thread;                     ///< of that stack if no frame is the user's own: "pt_autograd_0"
  MemorySpace space = MemorySpace::device;
  std::uint64_t stacks = 0;
  bool leak = false;
  bool suspected = false;  ///< no leak yet: it has most of its memory space's recent growth, and rises to the end
  SiteShape shape = SiteShape::flat;
  Held live;
  Held at_exit;
  std::int64_t growth_bytes = 0;
  std::int64_t growth_blocks = 0;
  double growth_bytes_per_s = 0;
  double p_value = 1;
  double oldest_s = 0;  ///< age of its oldest live block
  double share = 0;     ///< of the growth of all sites in the memory space; 0 if it does not grow
  std::vector<std::uint32_t> pids;
  std::optional<FoundKeeper> keeper;  ///< what keeps its blocks, as the program found it
  SiteLook look;                      ///< what else the newest look shows about them
  /// If not empty, several variables keep what the line allocated, and this is the part of one of them, estimated from
  /// the sample of the look: its name, without numbers.
  std::string part;
  std::optional<std::size_t> finding;  ///< its index in TraceReport::findings
};

/// A leak, or a suspected one: sites that hold blocks of the same steps (lockstep.hpp), unless the look in the program
/// found several variables that keep them; then each variable is a finding.
struct Finding {
  std::vector<std::size_t> sites;  ///< adjacent indexes in TraceReport::sites; the probable keeper is first
  bool leak = false;               ///< otherwise, it is suspected
  Held live;
  std::uint64_t steps = 0;  ///< steps from which it holds blocks; 0: it has one site
  double growth_bytes_per_s = 0;
  double share = 0;  ///< of the growth of all sites in the memory space
  double oldest_s = 0;
  std::optional<FoundKeeper> keeper;  ///< the keeper of its first site: the variable that keeps what it holds
  std::string why_no_keeper;          ///< the reason if there is none: "Python was not asked: it is switched off"
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
  bool can_tell = false;  ///< it has enough events
};

struct TraceReport {
  std::string program;
  double duration_s = 0;
  bool leak = false;
  bool suspected = false;  ///< nothing leaks, but a site is suspected
  /// Nothing leaks and no site is suspected, but a site with much of the growth rose by too little to judge.
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
  CategoryTotals categories;  ///< the categories of live device memory
  /// The same by the call that allocated them, the most bytes first: "cuMemAllocManaged", "memory of CUDA graphs".
  std::vector<std::pair<std::string_view, Held>> calls;
  /// The same by the library, or the program, that made the call: "libggml-cuda.so".
  std::vector<std::pair<std::string_view, Held>> libraries;
  bool has_native_exit = false;  ///< a program without Python ended in order; the memory that it still held is reported
  std::uint64_t suppressed_sites = 0;
  std::vector<std::string> notes;
};

/// Patterns for known and accepted sites; '*' matches anything. A site is suppressed if a pattern matches the whole
/// function or file name of any of its frames.
class Suppressions {
 public:
  /// One pattern per line; empty lines and lines that begin with '#' are skipped; "leak:" before a pattern is allowed.
  static Suppressions parse(std::string_view text);
  [[nodiscard]] bool matches(const Symbols& symbols, StackId stack) const;
  [[nodiscard]] bool empty() const { return patterns_.empty(); }

 private:
  std::vector<std::string> patterns_;
};
/// '*' matches any text, every other character itself.
bool matches_pattern(std::string_view pattern, std::string_view text);

/// The advice on a leak: what to bound, or, if its keeper is unknown, to search for it.
std::string advice_on(const Finding& finding);

/// REQUIRES: trace.finish().
TraceReport report_of(const ProbeTrace& trace, ProbeNames& names, const Suppressions& suppressions = {});

/// Live bytes of one memory space by stack, over all processes: at the moment that is shown, or at `moment` (index into
/// the requested moments) if set.
Profile profile_of(const ProbeTrace& trace, ProbeNames& names, MemorySpace space,
                   std::optional<std::size_t> moment = {});
/// Live bytes of device memory by category: as reported by the program, otherwise by their stacks.
CategoryTotals categories_of(const ProbeTrace& trace, ProbeNames& names, StackCategories& stacks);
/// `to` minus `from`, by stack.
Profile difference(const Profile& from, const Profile& to);

}  // namespace vramtrack::trace

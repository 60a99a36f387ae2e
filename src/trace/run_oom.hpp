// RunOom: what filled the memory when an allocation of a traced program failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/probe_names.hpp"
#include "trace/probe_trace.hpp"
#include "trace/trace_report.hpp"

namespace vramtrack::trace {

/// A line of code and what it held at the failure.
struct OomSite {
  SiteLine line;
  std::string_view call;
  Held live;
  bool leak = false;  ///< as judged over the whole run
};

/// What filled the memory: whatever accounts for half of it would have to change.
enum class RunOomCause : std::uint8_t {
  leak,           ///< leaking lines held half of the live memory
  fragmentation,  ///< the framework had cached enough, but not in one piece
  limit,          ///< a limit of `vramtrack run` refused the allocation
  others,         ///< other processes held more than this one
  request,        ///< the allocation itself was larger than half of what the process held
  full,           ///< the program's own live memory
};

struct RunOom {
  std::uint32_t pid = 0;
  std::string command;
  std::string device;  ///< for people: name and UUID, as far as known
  std::optional<std::uint64_t> total_bytes;
  double after_s = 0;  ///< since the process began
  std::uint64_t asked_bytes = 0;
  SiteLine asked_by;
  bool is_refused = false;        ///< refused by a limit of `vramtrack run`
  std::uint64_t limit_bytes = 0;  ///< 0: unknown
  std::optional<std::uint64_t> device_free_bytes;
  std::int64_t held_bytes = 0;  ///< held by this process on the device: live and cached
  std::int64_t live_bytes = 0;
  std::int64_t cached_bytes = 0;    ///< cached by the framework, and used by no block
  std::vector<OomSite> sites;       ///< most bytes first
  std::vector<ProbeHolder> others;  ///< other processes on the device, most bytes first
  std::uint64_t others_bytes = 0;
  RunOomCause cause = RunOomCause::full;
  std::string because;  ///< the cause in words
  std::string next_step;
};

/// The report for the process whose allocation failed first; nullopt: none failed. REQUIRES: trace.finish(), and
/// `report` is from the same trace. An allocation that a framework successfully retried is not a failure.
std::optional<RunOom> oom_of_run(const ProbeTrace& trace, ProbeNames& names, const TraceReport& report);

/// The report as text, about ten lines.
std::string run_oom_text(const RunOom& oom, const ProbeNames& names, std::size_t sites);
/// "vramtrack.run_oom.v1"
std::string run_oom_json(const RunOom& oom, const ProbeNames& names);

}  // namespace vramtrack::trace

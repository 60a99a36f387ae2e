// A scan: the server's data for a period, read page by page and judged machine by machine, by several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "fleet/judge.hpp"
#include "fleet/plan.hpp"
#include "fleet/unknown_metrics.hpp"

namespace vramtrack::fleet {

struct ScanOptions {
  PlanOptions plan;
  Config config;
  unsigned threads = 2;  ///< threads that judge; one more reads
  bool json = false;     ///< fill MachineVerdict::json
  /// The pause after a first failed attempt at a request; tests make it short.
  double first_pause_s = 1;
  /// Whether something else ends the scan; checked between two requests.
  std::function<bool()> is_cancelled = [] { return false; };
};

struct MachineVerdict {
  std::string host;  ///< see Roster::machine_of(); GpuVerdict::device has its displayed name
  std::vector<GpuVerdict> gpus;
  std::string json;  ///< vramtrack.analysis.v1
};

/// Machines whose samples could not be read, or a server that returned none or only part of its data, with the reason.
struct Unread {
  std::vector<std::string> hosts;
  std::string why;
  std::string server;    ///< empty: these machines
  bool is_part = false;  ///< of the server's data
};
/// "3 machines", "the server http://…", "part of what the server http://… has", "series without a host".
std::string words_of(const Unread& unread);

struct Scan {
  std::vector<MachineVerdict> machines;  ///< by host
  std::vector<Unread> unread;
  std::vector<std::string> exporters;  ///< the exporters whose series were read
  std::vector<UnknownMetric> unknown;  ///< metrics that look like GPU memory but were not read
  std::uint64_t samples = 0;
  std::uint64_t blank_values = 0;
  std::uint64_t unnamed_series = 0;
  std::uint64_t retried_requests = 0;
  bool was_cancelled = false;
};

/// The names of the machines, one for each that was renamed.
std::set<std::string> hosts_of(const Scan& scan);

/// Reports progress; called from the threads of the scan, one at a time.
using ScanProgress = std::function<void(std::size_t machines_judged, std::size_t machines, std::uint64_t samples)>;

/// Blocks until all machines are judged. Memory: two pages at about 3 bytes per sample, and the engines of as many
/// machines as there are threads. The result does not depend on the number of threads. REQUIRES: the reader's servers
/// answer (answering_persistently()).
tl::expected<Scan, HttpFailure> scan(const Reader& reader, const Mapping& mapping, const ScanOptions& options,
                                     const ScanProgress& progress);

// The parts of a scan, for callers that continue from pass to pass (watch.hpp).

struct PageRequest {
  Page page;
  PlanOptions plan;  ///< with the period to read
  bool wants_capacity = true;
};
/// Reads one page into memory, each machine once; splits it if the server's limits require that. Transient failures are
/// retried, three attempts in all; machines that cannot be read are added to `unread`.
std::vector<Machine> read_page(const Reader& reader, const Mapping& mapping, const Plan& plan, PageRequest request,
                               const ScanOptions& options, Roster& roster, Scan& into);
/// The server's metrics in that period that look like GPU memory but are not read.
std::vector<UnknownMetric> unknown_metrics(const Reader& reader, const Mapping& mapping, const PlanOptions& plan);
/// Calls Reader::answering() with retries; other servers are added to `unread`. A failure: none answers.
tl::expected<Reader, HttpFailure> answering_persistently(Reader& reader, const ScanOptions& options, Scan& into);
/// Adds Reader::take_lacking() to `unread`, each server once. Returns whether there was any.
bool take_lacking(const Reader& reader, Scan& into);
/// Calls make_plan() with retries.
tl::expected<Plan, HttpFailure> plan_persistently(const Reader& reader, const Mapping& mapping,
                                                  const ScanOptions& options, Roster& roster, std::uint64_t& retried);
/// The exporters' names, without repetitions.
std::vector<std::string> exporters_of(const Plan& plan);

}  // namespace vramtrack::fleet

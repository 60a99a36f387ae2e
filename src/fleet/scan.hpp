// A scan: what a server holds of a time, read page by page and judged machine by machine, by several threads.
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
  unsigned threads = 2;  ///< that judge; reading has one of its own
  bool json = false;     ///< make MachineVerdict::json
  /// Between two attempts at a request; tests make it short.
  double first_pause_s = 1;
  /// Something else ends the scan: looked at between two requests.
  std::function<bool()> is_cancelled = [] { return false; };
};

struct MachineVerdict {
  std::string host;  ///< as in Roster::machine_of(); GpuVerdict::device says what it is called
  std::vector<GpuVerdict> gpus;
  std::string json;  ///< vramtrack.analysis.v1
};

/// Machines whose samples could not be read, or a server that did not answer, or not with all that it has, and why.
struct Unread {
  std::vector<std::string> hosts;
  std::string why;
  std::string server;    ///< empty: these machines
  bool is_part = false;  ///< of the server
};
/// "3 machines", "the server http://…", "part of what the server http://… has", "series without a host".
std::string words_of(const Unread& unread);

struct Scan {
  std::vector<MachineVerdict> machines;  ///< by host
  std::vector<Unread> unread;
  std::vector<std::string> exporters;  ///< whose series were read
  std::vector<UnknownMetric> unknown;  ///< what looks like memory of GPUs and was not read
  std::uint64_t samples = 0;
  std::uint64_t blank_values = 0;
  std::uint64_t unnamed_series = 0;
  std::uint64_t retried_requests = 0;
  bool was_cancelled = false;
};

/// The names of the machines; those that were renamed have one.
std::set<std::string> hosts_of(const Scan& scan);

/// How far it is; called from the threads of the scan, one at a time.
using ScanProgress = std::function<void(std::size_t machines_judged, std::size_t machines, std::uint64_t samples)>;

/// Blocks until all is judged. Memory: two pages, about 3 bytes a sample, and the engines of as many machines as there
/// are threads. The result does not depend on their number.
/// REQUIRES: the reader's servers answer (answering_persistently()).
tl::expected<Scan, HttpFailure> scan(const Reader& reader, const Mapping& mapping, const ScanOptions& options,
                                     const ScanProgress& progress);

// The parts of it, for who continues from pass to pass (watch.hpp).

struct PageRequest {
  Page page;
  PlanOptions plan;  ///< whose time is read
  bool wants_capacity = true;
};
/// One page into memory, each machine once; it is split where the server's limits forbid it. What failed in passing is
/// tried three times in all; what cannot be read goes into `unread`.
std::vector<Machine> read_page(const Reader& reader, const Mapping& mapping, const Plan& plan, PageRequest request,
                               const ScanOptions& options, Roster& roster, Scan& into);
/// What the server has in that time that looks like memory of GPUs and is not read.
std::vector<UnknownMetric> unknown_metrics(const Reader& reader, const Mapping& mapping, const PlanOptions& plan);
/// Reader::answering(), likewise; the others go into `unread`. A failure: none answers.
tl::expected<Reader, HttpFailure> answering_persistently(Reader& reader, const ScanOptions& options, Scan& into);
/// Reader::take_lacking(), into `unread`, each server once. Whether there was any.
bool take_lacking(const Reader& reader, Scan& into);
/// make_plan(), likewise.
tl::expected<Plan, HttpFailure> plan_persistently(const Reader& reader, const Mapping& mapping,
                                                  const ScanOptions& options, Roster& roster, std::uint64_t& retried);
/// Their names, without repetitions.
std::vector<std::string> exporters_of(const Plan& plan);

}  // namespace vramtrack::fleet

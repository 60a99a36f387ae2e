// Rescan: judges a GPU by the current data of a Prometheus-compatible server, if no agent answers.
#pragma once

#include <memory>

#include "actuate/evidence.hpp"
#include "core/config.hpp"
#include "fleet/exporters.hpp"
#include "fleet/reader.hpp"

namespace vramtrack::actuate {

struct RescanOptions {
  std::shared_ptr<const fleet::Mapping> mapping;
  Config config;
  double since_s = 24.0 * 3600;  ///< how much of the past is judged
};

/// Judges the GPU that an alert's labels UUID, uuid or gpu_uuid name or, without one, the machine that Hostname or
/// hostname names. Its processes are unknown: the evidence is about the device. Errors: the alert names neither, the
/// server does not answer, it has no data of that GPU, or none of the last five minutes (after which Prometheus itself
/// considers a series stale). Blocks; may be called by several threads.
Result<Witness> rescan(const fleet::Reader& reader, const RescanOptions& options, const Labels& labels, Timestamp now);

}  // namespace vramtrack::actuate

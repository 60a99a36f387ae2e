// A rescan: what a Prometheus-compatible server has of a GPU, judged now, where no agent answers.
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
  double since_s = 24.0 * 3600;  ///< of the past that is judged
};

/// Judges the GPU that the labels UUID, uuid or gpu_uuid of an alert name, or without one the machine that Hostname or
/// hostname names. No process is known of it: the evidence is about the device. Errors: the alert names neither, the
/// server does not answer, it has nothing of that GPU, or nothing of the last five minutes (after that Prometheus
/// itself takes a series for stale). Blocks; may be called by several threads.
Result<Witness> rescan(const fleet::Reader& reader, const RescanOptions& options, const Labels& labels, Timestamp now);

}  // namespace vramtrack::actuate

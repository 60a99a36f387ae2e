// OTLP: the metrics of a scrape, as a request that exports them to an OpenTelemetry collector, in the JSON encoding of
// OTLP/HTTP (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). Besides our own metrics, it includes
// those of the semantic conventions for GPUs (https://opentelemetry.io/docs/specs/semconv/hardware/gpu/). Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/time.hpp"

namespace vramtrack {

/// The exporter's identity.
struct OtlpResource {
  std::map<std::string, std::string> attributes;  ///< placed before the following ones
  std::string service;                            ///< service.name
  std::string version;                            ///< service.version
  std::string host;                               ///< host.name; omitted if empty
  Timestamp start;                                ///< the time from which counters count
  Timestamp now = {};
};

/// Converts `text` in Prometheus' text format 0.0.4, as prometheus_text() and fleet_metrics() write it. Lines in
/// another form are dropped.
std::string otlp_json(std::string_view text, const OtlpResource& resource);

}  // namespace vramtrack

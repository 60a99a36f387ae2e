// OTLP: the metrics of a scrape, as a request that exports them to an OpenTelemetry collector, in the JSON encoding of
// OTLP/HTTP (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). In addition to our own metrics it has
// those of the semantic conventions for GPUs (https://opentelemetry.io/docs/specs/semconv/hardware/gpu/). Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/time.hpp"

namespace vramtrack {

/// The exporter's identity.
struct OtlpResource {
  std::map<std::string, std::string> attributes;  ///< go before what follows
  std::string service;                            ///< service.name
  std::string version;                            ///< service.version
  std::string host;                               ///< host.name; empty: left out
  Timestamp start;                                ///< counters count from here
  Timestamp now = {};
};

/// Converts `text` in Prometheus' text format 0.0.4, as prometheus_text() and fleet_metrics() write it. Lines of
/// another form are dropped.
std::string otlp_json(std::string_view text, const OtlpResource& resource);

}  // namespace vramtrack

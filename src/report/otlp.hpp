// OTLP: what a scrape gives, as a request that exports it to an OpenTelemetry collector, in the JSON encoding of
// OTLP/HTTP (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). Beside our own metrics it has those of
// the semantic conventions for GPUs (https://opentelemetry.io/docs/specs/semconv/hardware/gpu/). Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/time.hpp"

namespace vramtrack {

/// Who exports.
struct OtlpResource {
  std::map<std::string, std::string> attributes;  ///< go before what follows
  std::string service;                            ///< service.name
  std::string version;                            ///< service.version
  std::string host;                               ///< host.name; empty: left out
  Timestamp start;                                ///< counters count from here
  Timestamp now = {};
};

/// `text` in Prometheus' text format 0.0.4, as prometheus_text() and fleet_metrics() write it. Lines of another form
/// are left out.
std::string otlp_json(std::string_view text, const OtlpResource& resource);

}  // namespace vramtrack

// Otlp: sends a running program's metrics to an OpenTelemetry collector if the environment names one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "act/otlp_push.hpp"
#include "core/result.hpp"
#include "report/otlp.hpp"

namespace vramtrack::agent {

/// `text` returns the current text of /metrics, null if there is none yet; called on another thread. `resource`: the
/// exporter; the environment's attributes and service name override it. Null: no collector. Errors name the variable.
Result<std::unique_ptr<act::OtlpPush>> open_otlp(OtlpResource resource,
                                                 std::function<std::shared_ptr<const std::string>()> text,
                                                 std::function<void(const std::string&)> log);

}  // namespace vramtrack::agent

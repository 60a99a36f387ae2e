// Otlp: the metrics of a program that runs, sent to an OpenTelemetry collector, if the environment names one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "act/otlp_push.hpp"
#include "core/result.hpp"
#include "report/otlp.hpp"

namespace vramtrack::agent {

/// `text`: what /metrics gives now; null: nothing yet. Called on its own thread. `resource` is who exports; the
/// environment's attributes and service name go before. Null: no collector is named. Errors name the variable.
Result<std::unique_ptr<act::OtlpPush>> open_otlp(OtlpResource resource,
                                                 std::function<std::shared_ptr<const std::string>()> text,
                                                 std::function<void(const std::string&)> log);

}  // namespace vramtrack::agent

// OtlpPush: sends metrics to an OpenTelemetry collector at regular intervals, over OTLP/HTTP. It is configured with the
// standard environment variables of OpenTelemetry exporters
// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and .../configuration/sdk-environment-variables/).
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "act/http_exchange.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

struct OtlpTarget {
  Url url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string ca_file;  ///< empty: the system's certificates
  double every_s = 60;
  double timeout_s = 10;
  std::string service;                            ///< OTEL_SERVICE_NAME; empty: not given
  std::map<std::string, std::string> attributes;  ///< OTEL_RESOURCE_ATTRIBUTES
};

/// Returns the value of an environment variable; empty if it is not set.
using Environment = std::function<std::string(const char* name)>;

/// nullopt: no endpoint is set, or metrics are switched off. Errors name the variable, what was expected and, for an
/// unsupported protocol, what to set. Pure except for `environment`.
Result<std::optional<OtlpTarget>> otlp_target(const Environment& environment);
Result<std::optional<OtlpTarget>> otlp_target();  ///< from this process's environment

/// Runs on a thread of its own.
class OtlpPush {
 public:
  /// `body`: returns the metrics to send, or empty if there are none yet; called on the thread. `log`: receives each
  /// problem once until it changes, and its end. Errors: this build cannot send there, or no thread can be started.
  static Result<std::unique_ptr<OtlpPush>> start(OtlpTarget target, std::function<std::string()> body,
                                                 std::function<void(const std::string&)> log);
  /// Ends a request in progress.
  ~OtlpPush();
  OtlpPush(const OtlpPush&) = delete;
  OtlpPush& operator=(const OtlpPush&) = delete;

 private:
  OtlpPush(OtlpTarget target, std::function<std::string()> body, std::function<void(const std::string&)> log);
  void live();
  [[nodiscard]] std::string send(std::string body) const;

  const OtlpTarget target_;
  const std::function<std::string()> body_;
  const std::function<void(const std::string&)> log_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace vramtrack::act

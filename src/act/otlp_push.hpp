// OtlpPush: sends metrics to an OpenTelemetry collector from time to time, over OTLP/HTTP. It is set by the environment
// variables that every OpenTelemetry exporter has
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

/// The value of an environment variable; empty: it is not set.
using Environment = std::function<std::string(const char* name)>;

/// nullopt: no endpoint is set, or metrics are switched off. Errors name the variable, and say what was expected and,
/// for a protocol that this does not speak, what to set. Pure except for `environment`.
Result<std::optional<OtlpTarget>> otlp_target(const Environment& environment);
Result<std::optional<OtlpTarget>> otlp_target();  ///< of this process

/// Has a separate thread.
class OtlpPush {
 public:
  /// `body`: what is sent; empty: there is nothing yet. Called on the thread. `log`: problems, once until they change,
  /// and their end. Errors: this build cannot send there, or no thread can be started.
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

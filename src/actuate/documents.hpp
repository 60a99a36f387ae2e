// Documents: the JSON that the actuator serves and accepts, besides Alertmanager's (docs/actuate.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "act/ladder.hpp"
#include "core/result.hpp"

namespace vramtrack::actuate {

/// The actuator's state, for the API, the metrics and `vramtrack actuate status`.
struct Summary {
  bool dry_run = true;
  std::vector<std::string> policies;
  std::optional<act::Breaker> breaker;
  std::size_t nodes_acted_on = 0;
  std::int64_t nodes_allowed = 0;
  std::size_t climbing = 0;
  std::optional<Timestamp> last_webhook;
  std::vector<act::Climb> alerts_known;  ///< climbs of claims, latest first
  std::uint64_t webhooks = 0;
  std::uint64_t bad_webhooks = 0;
  std::uint64_t alerts = 0;
  std::uint64_t record_failures = 0;
  std::map<std::pair<std::string, std::string>, std::uint64_t> acts;  ///< by action and outcome
  std::map<std::string, std::uint64_t> refused;                       ///< by reason
};

/// "vramtrack.actuate.v1", with the first `most` alerts.
std::string summary_json(const Summary& summary, std::size_t most = 256);
/// Errors name the invalid part.
Result<Summary> parse_summary(std::string_view text);
/// The summary as text for people.
std::string summary_words(const Summary& summary);
/// The summary as metrics for Prometheus, text format 0.0.4.
std::string summary_metrics(const Summary& summary);

/// The body of a reset: who resets it, and why.
struct ResetRequest {
  std::string by;
  std::string reason;
};
Result<ResetRequest> parse_reset(std::string_view body);
std::string reset_json(const ResetRequest& request);

/// The answer of an agent's /api/v1/version; a field is empty if the answer lacks it.
struct AgentVersion {
  std::string host;       ///< of the machine; in a pod, not the pod's name
  std::string simulated;  ///< the scenario that it simulates
};
AgentVersion parse_version(std::string_view text);

}  // namespace vramtrack::actuate

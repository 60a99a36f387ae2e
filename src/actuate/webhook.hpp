// Webhook: the body that Alertmanager posts to a webhook receiver, version 4 of its JSON
// (https://prometheus.io/docs/alerting/latest/configuration/#webhook_config). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/time.hpp"

namespace vramtrack::actuate {

using Labels = std::map<std::string, std::string>;

/// One alert. Its fingerprint is computed from its labels; together with `starts_at`, it identifies one firing.
struct WebhookAlert {
  bool is_firing = false;
  std::string fingerprint;
  Timestamp starts_at;
  Labels labels;
  Labels annotations;
};

struct Webhook {
  std::string receiver;
  std::string group_key;
  std::uint64_t truncated = 0;  ///< alerts of the group that were left out because of the receiver's `max_alerts`
  std::vector<WebhookAlert> alerts;
};

/// The most alerts in one body.
inline constexpr std::size_t kMostAlerts = 4096;
inline constexpr std::size_t kMostLabels = 128;
inline constexpr std::size_t kLongestLabel = 4096;

/// Errors name the position and what was expected there: `alerts[3].startsAt: expected a time, got "now"`.
Result<Webhook> parse_webhook(std::string_view body);

/// "2026-01-02T03:04:05.123Z", or with an offset instead of the Z: "+01:00".
Result<Timestamp> parse_rfc3339(const std::string& text);

}  // namespace vramtrack::actuate

// Site: the actuator's HTTP interface (docs/actuate.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "actuate/actuator.hpp"
#include "agent/server/http.hpp"

namespace vramtrack::actuate {

struct SiteOptions {
  std::string token;  ///< empty: only root and this process's user may post
  std::string host;   ///< this machine's name
  std::uint32_t own_uid = 0;
  std::function<void()> wake;  ///< called when alerts have arrived
};

/// The size limit of one webhook: about 4,000 alerts.
inline constexpr std::size_t kMostWebhookBytes = 4U << 20U;

/// Serves POST /api/v1/alerts (Alertmanager's webhook), POST /api/v1/breaker/reset, GET /api/v1/acts, /api/v1/status,
/// /metrics and /healthz. Senders need the token, or to be root or this user. `actuator` must outlive the site.
agent::Site site_of(Actuator& actuator, SiteOptions options);

}  // namespace vramtrack::actuate

// FleetSite: the page, the API and the metrics of a watched fleet.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "agent/server/http.hpp"

namespace vramtrack::fleet {

/// The documents of one pass.
struct FleetDocuments {
  std::string json;     ///< for /api/v1/fleet
  std::string metrics;  ///< for /metrics
  bool is_healthy = true;
};

struct SiteOptions {
  std::string host;   ///< this machine's name, by which clients may address it
  std::string token;  ///< empty: no token is required
};

/// Answers GET of /, the dashboard's files, /api/v1/fleet, /metrics and /healthz. Any thread.
class FleetSite {
 public:
  explicit FleetSite(SiteOptions options) : options_(std::move(options)) {}

  /// Serves these documents from now on.
  void publish(FleetDocuments documents);
  /// For HttpServer::start(); this must outlive the server.
  agent::Site site();
  /// The metrics of the last pass; null before the first one. Any thread.
  [[nodiscard]] std::shared_ptr<const std::string> metrics() const;

 private:
  [[nodiscard]] std::optional<agent::Response> admit(const agent::Request& request) const;
  [[nodiscard]] agent::Response answer(const agent::Request& request) const;

  struct Published {
    std::shared_ptr<const std::string> json, metrics;
    bool is_healthy = true;
  };
  SiteOptions options_;
  mutable std::mutex mutex_;
  Published published_;
};

}  // namespace vramtrack::fleet

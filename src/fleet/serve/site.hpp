// FleetSite: the page, the API and the metrics of a fleet that is watched.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "agent/server/http.hpp"

namespace vramtrack::fleet {

/// The documents of one pass.
struct FleetDocuments {
  std::string json;     ///< the JSON of /api/v1/fleet
  std::string metrics;  ///< the metrics of /metrics
  bool is_healthy = true;
};

struct SiteOptions {
  std::string host;   ///< of this machine: a name it may be addressed by
  std::string token;  ///< empty: none is asked for
};

/// Answers GET of /, the dashboard's files, /api/v1/fleet, /metrics and /healthz. Any thread.
class FleetSite {
 public:
  explicit FleetSite(SiteOptions options) : options_(std::move(options)) {}

  /// From here on these are answered.
  void publish(FleetDocuments documents);
  /// For HttpServer::start(); this must outlive the server.
  agent::Site site();
  /// The metrics of the last pass; null: there was none. Any thread.
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

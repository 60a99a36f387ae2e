// Api: docs/openapi.yaml, answered from what is published, the store's file and the acknowledgements.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/acknowledgements.hpp"
#include "agent/server/http.hpp"
#include "agent/server/peer.hpp"
#include "agent/server/published.hpp"
#include "core/settings.hpp"
#include "report/metrics.hpp"

namespace vramtrack::agent {

/// What does not change from sample to sample. Replaced as a whole by a reload.
struct ApiConfig {
  LayeredConfig layers;
  std::string token;  ///< empty: none is asked for
  std::string host;
  std::string version;
  std::uint32_t own_uid = 0;
  std::uint32_t pid = 0;
  Timestamp started;
  std::string simulated;   ///< the scenario; empty: live
  std::string store_path;  ///< empty: nothing is recorded
  std::vector<std::string> sources;
};

class Api {
 public:
  /// `published` and `acknowledgements` must outlive the Api and the server that asks it. `now`: the wall clock, for
  /// the time of an acknowledgement.
  Api(const Published& published, Acknowledgements& acknowledgements, std::function<Timestamp()> now);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  /// From here on; a new token ends the streams that are open.
  void configure(std::shared_ptr<const ApiConfig> config);

  /// The two halves of a Site, and one made of them. From any number of threads.
  [[nodiscard]] std::optional<Response> admit(const Request& request) const;
  [[nodiscard]] Response respond(const Request& request);
  Site site();

  [[nodiscard]] std::size_t streams() const { return streams_; }

 private:
  struct Cache;
  using Text = std::shared_ptr<const std::string>;

  [[nodiscard]] std::shared_ptr<const ApiConfig> config() const;
  [[nodiscard]] Rights rights(const Request& request, const ApiConfig& config) const;
  [[nodiscard]] Response answer(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response metrics(const ApiConfig& config);
  [[nodiscard]] Response health(const ApiConfig& config) const;
  [[nodiscard]] Response history(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response events(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response acknowledge(const Request& request, const ApiConfig& config);
  [[nodiscard]] Text view_text(const Snapshot& snapshot, const Rights& rights);
  [[nodiscard]] Text tick_text(const Snapshot& snapshot);
  [[nodiscard]] Text status_text(const Snapshot* snapshot, const Rights& rights, const ApiConfig& config);
  [[nodiscard]] Text alerts_text(const Snapshot* snapshot, const ApiConfig& config);

  const Published& published_;
  Acknowledgements& acknowledgements_;
  std::function<Timestamp()> now_;
  mutable std::mutex mutex_;  ///< of config_
  std::shared_ptr<const ApiConfig> config_;
  std::unique_ptr<Cache> cache_;
  std::timed_mutex history_;  ///< one at a time: bounded memory and disk
  std::atomic<std::size_t> streams_ = 0;
};

}  // namespace vramtrack::agent

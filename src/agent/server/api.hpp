// Api: implements docs/openapi.yaml with the published views, the store's file and the acknowledgements.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "act/runner.hpp"
#include "agent/acknowledgements.hpp"
#include "agent/server/http.hpp"
#include "agent/server/launches.hpp"
#include "agent/server/mark_box.hpp"
#include "agent/server/own_processes.hpp"
#include "agent/server/peer.hpp"
#include "agent/server/pod_names.hpp"
#include "agent/server/published.hpp"
#include "agent/server/quota.hpp"
#include "agent/server/sites.hpp"
#include "core/settings.hpp"
#include "core/traced_categories.hpp"
#include "live/silences.hpp"
#include "report/metrics.hpp"

namespace vramtrack::agent {

struct HistoryRange;

struct KnownAlert;

/// The values that do not change from sample to sample. A reload replaces them as a whole.
struct ApiConfig {
  LayeredConfig layers;
  std::string token;  ///< empty: none is required
  std::string host;
  std::string node;  ///< label Hostname of the metrics: in a pod the node's name, else `host`
  std::string version;
  std::uint32_t own_uid = 0;
  std::uint32_t pid = 0;
  Timestamp started;
  std::string simulated;   ///< the scenario; empty: live
  std::string store_path;  ///< empty: nothing is recorded
  std::vector<std::string> sources;
  act::Runner* runner = nullptr;       ///< runs the policies; must outlive the server. Null: there are none
  std::shared_ptr<PodNames> pods;      ///< null: not running in Kubernetes
  std::shared_ptr<Launches> launches;  ///< null: no process of this machine is watched, as in a simulation
  std::shared_ptr<MarkBox> marks;      ///< null: marks are not accepted
  std::shared_ptr<ProbedSites> sites;  ///< null: no process of this machine, as in a simulation
  std::shared_ptr<const TracedCategories> traced_categories;  ///< null: no process is traced from outside
};

class Api {
 public:
  /// `published`, `acknowledgements` and `silences` must outlive the Api and the server that calls it. `now`: the wall
  /// clock, for the time of an acknowledgement and of silences.
  Api(const Published& published, Acknowledgements& acknowledgements, Silences& silences,
      std::function<Timestamp()> now);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  /// Applies from now on; a new token ends the open streams.
  void configure(std::shared_ptr<const ApiConfig> config);

  /// The two halves of a Site, and a Site made of them. Any number of threads.
  [[nodiscard]] std::optional<Response> admit(const Request& request) const;
  [[nodiscard]] Response respond(const Request& request);
  Site site();

  [[nodiscard]] std::size_t streams() const { return streams_.taken(); }

  /// The text of /metrics, whether or not that path is enabled; null before the first sample. Any thread.
  [[nodiscard]] std::shared_ptr<const std::string> metrics_text();

  // The limits on simultaneous answers follow from the cost of one (docs/design/0010-server-limits.md).
  /// Building a history of kMostPoints takes some 30 MB and half a second of processor time; other queries to the store
  /// take less.
  static constexpr std::uint64_t kMostReading = 2;
  static constexpr std::uint64_t kReservedReading = 1;
  static constexpr std::chrono::seconds kReadingPatience{3};  ///< a page requests several at once; they take turns
  /// A report of sites is at most 4 MB, and takes some 25 MB while it is read.
  static constexpr std::uint64_t kMostAsking = 2;
  static constexpr std::uint64_t kReservedAsking = 1;
  static constexpr std::chrono::milliseconds kAskingPatience{300};  ///< under 2 s with ProbedSites::kPatience
  /// Unread answers from the store: room for five of the longest histories, and two more for root and the owner.
  static constexpr std::uint64_t kMostUnreadBytes = 64 << 20;
  static constexpr std::uint64_t kReservedUnreadBytes = 24 << 20;
  static constexpr std::uint64_t kReservedStreams = 4;  ///< in addition to agent.max-streams, for root and the owner

 private:
  struct Cache;
  using Text = std::shared_ptr<const std::string>;

  [[nodiscard]] std::shared_ptr<const ApiConfig> config() const;
  [[nodiscard]] Rights rights(const Request& request, const ApiConfig& config) const;
  [[nodiscard]] Response answer(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response metrics(const ApiConfig& config);
  [[nodiscard]] Response health(const ApiConfig& config) const;
  [[nodiscard]] Response alerts(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response series(const ApiConfig& config);
  /// `make` reads the store when its turn comes; its answer counts as unread until the client has read it.
  [[nodiscard]] Response from_store(const Request& request, std::uint64_t likely_bytes,
                                    const std::function<Response()>& make);
  /// `answer` counts as unread until the client has read it.
  [[nodiscard]] Response until_read(const Request& request, Response answer);
  [[nodiscard]] Response history(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response gauges(const Request& request, const ApiConfig& config);
  /// Reads the parameters from, to and points; returns an error response if one is invalid.
  [[nodiscard]] std::optional<Response> read_range(const Request& request, HistoryRange& range) const;
  [[nodiscard]] Response sites(const Request& request, const ApiConfig& config);
  /// The processes under the probe whose sites the client may see.
  [[nodiscard]] static std::vector<ProbedProcess> probed(const Snapshot* snapshot, const Rights& rights,
                                                         const ApiConfig& config);
  [[nodiscard]] Response events(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response marks(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response answer_own(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response silences(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response acts(const Request& request, const ApiConfig& config);
  /// A text that changes when an acknowledgement or a silence does.
  [[nodiscard]] std::string alerts_state();
  [[nodiscard]] std::string alerts_document(const Snapshot* snapshot, const std::vector<KnownAlert>& alerts);
  [[nodiscard]] bool is_silenced(const View& view, const SeriesView& series);
  [[nodiscard]] std::size_t silenced_count(const View& view);
  [[nodiscard]] Response acknowledge(const Request& request, const ApiConfig& config);
  [[nodiscard]] Text view_text(const Snapshot& snapshot, const Rights& rights);
  [[nodiscard]] Text tick_text(const Snapshot& snapshot);
  [[nodiscard]] Text status_text(const Snapshot* snapshot, const Rights& rights, const ApiConfig& config);
  [[nodiscard]] Text alerts_text(const Snapshot* snapshot, const ApiConfig& config);

  const Published& published_;
  Acknowledgements& acknowledgements_;
  Silences& silences_;
  std::function<Timestamp()> now_;
  mutable std::mutex mutex_;  ///< guards config_
  std::shared_ptr<const ApiConfig> config_;
  std::unique_ptr<Cache> cache_;
  Quota reading_{kMostReading, kReservedReading};
  Quota unread_{kMostUnreadBytes, kReservedUnreadBytes};
  Quota asking_{kMostAsking, kReservedAsking};
  Quota streams_{0, kReservedStreams};  ///< configure() sets agent.max-streams
};

}  // namespace vramtrack::agent

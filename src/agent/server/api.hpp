// Api: docs/openapi.yaml, answered from what is published, the store's file and the acknowledgements.
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

/// What does not change from sample to sample. Replaced as a whole by a reload.
struct ApiConfig {
  LayeredConfig layers;
  std::string token;  ///< empty: none is asked for
  std::string host;
  std::string node;  ///< label Hostname of the metrics: in a pod the node's name, else as `host`
  std::string version;
  std::uint32_t own_uid = 0;
  std::uint32_t pid = 0;
  Timestamp started;
  std::string simulated;   ///< the scenario; empty: live
  std::string store_path;  ///< empty: nothing is recorded
  std::vector<std::string> sources;
  act::Runner* runner = nullptr;       ///< of the policies; must outlive the server. Null: there are none
  std::shared_ptr<PodNames> pods;      ///< null: this does not run in Kubernetes
  std::shared_ptr<Launches> launches;  ///< null: no process of this machine is watched, as in a simulation
  std::shared_ptr<MarkBox> marks;      ///< null: none are taken
  std::shared_ptr<ProbedSites> sites;  ///< null: nothing of this machine runs here, as in a simulation
  std::shared_ptr<const TracedCategories> traced_categories;  ///< null: no process is traced from outside
};

class Api {
 public:
  /// `published`, `acknowledgements` and `silences` must outlive the Api and the server that asks it. `now`: the wall
  /// clock, for the time of an acknowledgement and of silences.
  Api(const Published& published, Acknowledgements& acknowledgements, Silences& silences,
      std::function<Timestamp()> now);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  /// From here on; a new token ends the streams that are open.
  void configure(std::shared_ptr<const ApiConfig> config);

  /// The two halves of a Site, and one made of them. From any number of threads.
  [[nodiscard]] std::optional<Response> admit(const Request& request) const;
  [[nodiscard]] Response respond(const Request& request);
  Site site();

  [[nodiscard]] std::size_t streams() const { return streams_.taken(); }

  /// As /metrics gives them, whether or not that is answered; null before the first sample. Any thread.
  [[nodiscard]] std::shared_ptr<const std::string> metrics_text();

  // What one answer costs, and so how many there may be at once (docs/design/0010-server-limits.md).
  /// A history of kMostPoints takes some 30 MB while it is made and half a second of a processor; other questions to
  /// the store take less.
  static constexpr std::uint64_t kMostReading = 2;
  static constexpr std::uint64_t kReservedReading = 1;
  static constexpr std::chrono::seconds kReadingPatience{3};  ///< a page asks for several at once: they take turns
  /// A report of sites is 4 MB at most and some 25 MB while it is read.
  static constexpr std::uint64_t kMostAsking = 2;
  static constexpr std::uint64_t kReservedAsking = 1;
  static constexpr std::chrono::milliseconds kAskingPatience{300};  ///< with ProbedSites::kPatience under two seconds
  /// Answers from the store that clients have not read: five of the longest histories, and two for root and the owner.
  static constexpr std::uint64_t kMostUnreadBytes = 64 << 20;
  static constexpr std::uint64_t kReservedUnreadBytes = 24 << 20;
  static constexpr std::uint64_t kReservedStreams = 4;  ///< beyond agent.max-streams, for root and the owner

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
  /// `make` reads the store, in its turn; what it answers counts as unread until the client has taken it.
  [[nodiscard]] Response from_store(const Request& request, std::uint64_t likely_bytes,
                                    const std::function<Response()>& make);
  /// `answer` counts as unread until the client has taken it.
  [[nodiscard]] Response until_read(const Request& request, Response answer);
  [[nodiscard]] Response history(const Request& request, const ApiConfig& config);
  [[nodiscard]] Response gauges(const Request& request, const ApiConfig& config);
  /// Reads from, to and points; the answer to a bad one.
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
  /// Changes when an acknowledgement or a silence does.
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
  Quota streams_{0, kReservedStreams};  ///< agent.max-streams of them
};

}  // namespace vramtrack::agent

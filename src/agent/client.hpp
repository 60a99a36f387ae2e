// AgentClient: queries a running agent on this machine through its Unix socket. For top, watch and our scripts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/result.hpp"
#include "core/series.hpp"
#include "core/time.hpp"
#include "core/view.hpp"
#include "live/silences.hpp"
#include "report/sites.hpp"

namespace vramtrack::agent {

/// Where an agent with this configuration creates its socket: agent.socket, else $RUNTIME_DIRECTORY/agent.sock (set by
/// systemd), else $XDG_RUNTIME_DIR/vramtrack/agent.sock, for root /run/vramtrack/agent.sock. Empty if nowhere.
std::string own_agent_socket(const AgentConfig& config);

/// The socket on which an agent currently answers: this user's, else the system's; nullopt if none does. Cost: two
/// connects.
std::optional<std::string> find_agent(const AgentConfig& config);

struct AgentAlert {
  std::string id;
  SeriesKey key;
  Alert alert;          ///< without the id of its series
  DeviceInfo device;    ///< id, index and name
  std::string process;  ///< its short name; empty: none, or unknown
  bool acknowledged = false;
  std::string acknowledged_by;
  std::string note;
  std::optional<Silence> silenced;  ///< if set, nobody is notified of the alert
};

/// One point of a history, which covers the time up to the next point.
struct AgentPoint {
  Timestamp time;
  std::uint64_t min = 0;
  double mean = 0;
  std::uint64_t max = 0;
};

struct AgentVersion {
  std::string version;
  std::string host;
  std::uint32_t pid = 0;
  Timestamp started;
  std::string simulated;  ///< the scenario it simulates; empty: it watches a real machine
};

/// Each call connects, sends a request and closes, within `timeout_s`. One thread per object. Errors name the socket
/// and, if the agent refused, contain its message. REQUIRES: SIGPIPE is ignored (act/http_exchange.hpp).
class AgentClient {
 public:
  /// `program`: the command that listens there, for messages.
  explicit AgentClient(std::string socket, double timeout_s = 5, std::string program = "agent")
      : socket_(std::move(socket)), timeout_s_(timeout_s), program_(std::move(program)) {}

  [[nodiscard]] Result<View> view() const;
  [[nodiscard]] Result<AgentVersion> version() const;
  /// The history in the agent's store for from <= t < to, at most `points` points.
  [[nodiscard]] Result<std::vector<AgentPoint>> history(const SeriesKey& key, Timestamp from, Timestamp to,
                                                        std::size_t points) const;
  /// The latest 200 alerts, newest first.
  [[nodiscard]] Result<std::vector<AgentAlert>> alerts() const;
  /// `id`: from alert_id (report/view_json.hpp).
  [[nodiscard]] Status acknowledge(const std::string& id, const std::string& note) const;

  /// The sites of a process under `vramtrack run`. An older agent reports none.
  [[nodiscard]] Result<SitesNow> sites(std::uint32_t pid) const;

  /// Sets a mark such as "step=1200" for a process that holds memory on a GPU. Its pid is as this program sees it, in
  /// the first group of `pids` that has such a process; refused if that group has several.
  [[nodiscard]] Status mark(const std::vector<std::vector<std::uint32_t>>& pids, const std::string& mark) const;

  [[nodiscard]] Result<std::vector<Silence>> silences() const;
  /// Returns the silence as the agent created it, with its id and author.
  [[nodiscard]] Result<Silence> silence(const Silence& silence) const;
  [[nodiscard]] Status end_silence(const std::string& id) const;

  /// The body of an answer with status 200 or 204. An empty `body` means GET, or `method`; else POSTs that JSON.
  [[nodiscard]] Result<std::string> ask(const std::string& path_and_query, const std::string& body = {},
                                        std::string_view method = "GET") const;
  [[nodiscard]] const std::string& socket() const { return socket_; }

 private:
  struct Answer {
    int status = 0;
    std::string body;
  };
  [[nodiscard]] Result<Answer> exchange(const std::string& path_and_query, const std::string& body,
                                        std::string_view method) const;
  [[nodiscard]] std::string doing() const {
    return (program_ == "agent" ? "asking the agent at " : "asking vramtrack " + program_ + " at ") + socket_;
  }

  std::string socket_;
  double timeout_s_;
  std::string program_;
};

}  // namespace vramtrack::agent

// Actuator: turns alerts into actions. Independent of the HTTP server: the caller passes webhooks in and calls tick().
//
//   take(webhook) ─> claims ─> act::Runner: on the record       any thread
//   tick()        ─> agents asked ─> evidence of the claims ─> act::Runner (its own thread: proof, intent, act, result)
//
// It has no state of its own: the state is in the ladder and its record.
//
// docs/design/0022-actuate.md
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "act/runner.hpp"
#include "actuate/agent_hosts.hpp"
#include "actuate/documents.hpp"
#include "actuate/evidence.hpp"
#include "actuate/webhook.hpp"

namespace vramtrack::actuate {

/// Queries the agent at that address. Called by several threads at once.
using AskAgent = std::function<Result<Witness>(const std::string& url)>;
/// Judges the series of an alert's GPU again if no agent answers. Likewise. Empty: such alerts are refused.
using Rescan = std::function<Result<Witness>(const Labels& labels)>;

struct ActuatorOptions {
  std::string agents = "http://{instance}";  ///< template of the agents' addresses
  AgentHosts hosts;                          ///< the hosts that are agents
  std::string node = "{Hostname}";           ///< template of the nodes' names
  std::vector<act::Limit> limits;            ///< fleet_limits()
  ActConfig act;                             ///< `enabled` is ignored: this program is the one that acts
  act::Policies policies;
  std::string folder;  ///< the folder of the record
  std::string own_user;
  AskAgent ask;
  Rescan rescan;
  act::Tools tools;
  std::function<Timestamp()> now;             ///< the wall clock; any thread
  std::function<void(std::string text)> log;  ///< any thread
  /// For crash tests: see RunnerOptions::at_point.
  std::function<void(std::string_view point, const act::Order& order)> at_point;
};

/// The limits on acts in a fleet.
std::vector<act::Limit> fleet_limits(const ActuateConfig& config);

class Actuator {
 public:
  /// Agents queried at once, and alerts processed per round.
  static constexpr std::size_t kAtOnce = 8;
  static constexpr std::size_t kMostInRound = 256;

  /// Continues with the state that an earlier run left. Errors: the folder is unusable, or another actuator uses it.
  static Result<std::unique_ptr<Actuator>> open(ActuatorOptions options);
  ~Actuator();
  Actuator(const Actuator&) = delete;
  Actuator& operator=(const Actuator&) = delete;

  /// Returns how many of its alerts are new. Errors: the record cannot be written; then none was accepted. Any thread.
  Result<std::size_t> take(const Webhook& webhook);
  /// Counts a webhook that could not be parsed.
  void count_bad_webhook();

  /// Runs one round. Call it from one thread. Blocks until the agents have answered.
  void tick();

  /// Closes the breaker for a person; the record names the person. False: it was not open. Errors: the record cannot be
  /// written; then the breaker stays open. Any thread.
  Result<bool> reset(const ResetRequest& request);

  /// Any thread.
  [[nodiscard]] Summary summary() const;
  [[nodiscard]] act::ActsState acts() const;
  [[nodiscard]] std::uint64_t revision() const;
  /// See Runner::wait_for_orders().
  bool wait_for_orders(double at_most_s);

 private:
  struct Core;
  explicit Actuator(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack::actuate

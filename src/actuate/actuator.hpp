// Actuator: turns alerts into actions. Independent of the HTTP server: the caller passes webhooks in and calls tick().
//
//   take(webhook) ─> claims ─> act::Runner: on the record       any thread
//   tick()        ─> agents asked ─> evidence of the claims ─> act::Runner (its own thread: proof, intent, act, result)
//
// It keeps nothing itself: the ladder and its record do.
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

/// Asks the agent at that address. Called by several threads at once.
using AskAgent = std::function<Result<Witness>(const std::string& url)>;
/// Judges the series of an alert's GPU again where no agent answers. Likewise. Empty: such alerts are refused.
using Rescan = std::function<Result<Witness>(const Labels& labels)>;

struct ActuatorOptions {
  std::string agents = "http://{instance}";  ///< template of the agents' addresses
  AgentHosts hosts;                          ///< which of them are agents
  std::string node = "{Hostname}";           ///< template of the names of nodes
  std::vector<act::Limit> limits;            ///< fleet_limits()
  ActConfig act;                             ///< `enabled` is not looked at: this is the program that acts
  act::Policies policies;
  std::string folder;  ///< the folder of the record
  std::string own_user;
  AskAgent ask;
  Rescan rescan;
  act::Tools tools;
  std::function<Timestamp()> now;             ///< the time of day; any thread
  std::function<void(std::string text)> log;  ///< any thread
  /// For tests of crashes: as RunnerOptions::at_point.
  std::function<void(std::string_view point, const act::Order& order)> at_point;
};

/// How much may be done to a fleet.
std::vector<act::Limit> fleet_limits(const ActuateConfig& config);

class Actuator {
 public:
  /// Agents asked at once, and alerts looked at in one round.
  static constexpr std::size_t kAtOnce = 8;
  static constexpr std::size_t kMostInRound = 256;

  /// Takes up what an earlier run left. Errors: the folder cannot be used, or another actuator uses it.
  static Result<std::unique_ptr<Actuator>> open(ActuatorOptions options);
  ~Actuator();
  Actuator(const Actuator&) = delete;
  Actuator& operator=(const Actuator&) = delete;

  /// How many alerts of it are new. Errors: the record cannot be written, and then nothing was taken in. Any thread.
  Result<std::size_t> take(const Webhook& webhook);
  /// Counts one that could not be read.
  void count_bad_webhook();

  /// One round. One thread. Blocks as long as the agents take to answer.
  void tick();

  /// A person closes the breaker; the record says who. False: it was not open. Errors: the record cannot be written; it
  /// stays open then. Any thread.
  Result<bool> reset(const ResetRequest& request);

  /// Any thread.
  [[nodiscard]] Summary summary() const;
  [[nodiscard]] act::ActsState acts() const;
  [[nodiscard]] std::uint64_t revision() const;
  /// As Runner::wait_for_orders().
  bool wait_for_orders(double at_most_s);

 private:
  struct Core;
  explicit Actuator(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack::actuate

// State: what the actuator must not forget: which alerts it has taken, what became of them, on which nodes it acted,
// and whether the breaker is open. One file that is replaced as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "act/subject.hpp"
#include "actuate/webhook.hpp"
#include "core/result.hpp"

namespace vramtrack::actuate {

/// One firing of one alert.
///
///   open --evidence agrees, a policy matches--> bound --its ladder begins--> begun --its ladder ends--> closed
///
/// A closed one never makes a subject again.
struct Case {
  std::string fingerprint;
  Timestamp starts_at;
  Labels labels;
  Timestamp first_seen;  ///< by this machine's time of day
  Timestamp last_seen;
  bool is_resolved = false;
  /// What it is bound to: subject_key() of it, and of a process its key, with the node as its host.
  std::string subject;
  ProcessKey process;
  bool has_begun = false;
  bool is_closed = false;
  std::string refusal;  ///< why nothing is done now: a word of Refusal
  std::string why;      ///< the same for people

  [[nodiscard]] std::string key() const;
  [[nodiscard]] bool is_bound() const { return !subject.empty(); }
};

/// An act that counts.
struct NodeAct {
  Timestamp time;
  std::string node;
};

struct OpenBreaker {
  Timestamp since;
  std::string why;
};

struct State {
  bool dry_run = true;  ///< of the run that wrote it
  std::map<std::string, Case> cases;
  std::vector<NodeAct> acts;
  std::optional<OpenBreaker> breaker;
  std::optional<Timestamp> last_webhook;
};

/// At most so many cases are kept: closed ones go first, the one last heard of longest ago before others.
inline constexpr std::size_t kMostCases = 4096;
void trim(State& state);
/// What a dry run left is not of a run that acts: its cases are open again, its acts did not happen. Nothing else.
void forget_dry_run(State& state);

std::string state_json(const State& state);
/// Errors name what is wrong. Pure.
Result<State> parse_state(std::string_view text);

/// `folder` + "/actuate.json". No file: an empty State. Errors: not readable, or not such a file.
Result<State> load_state(const std::string& folder);
/// On the disk when it returns.
Status save_state(const State& state, const std::string& folder);

/// Limits on what may be done to a fleet.
struct Limits {
  std::int64_t nodes = 3;  ///< within the window
  double share = 0;        ///< of fleet_nodes, if that is fewer; 0: no share
  std::int64_t fleet_nodes = 0;
  double window_s = 3600;
  std::int64_t acts_per_node_per_hour = 6;
};
/// The number of nodes that both allow: at least 1 by the share.
std::int64_t nodes_allowed(const Limits& limits);
/// Nodes acted on within the window that ends at `now`.
std::size_t nodes_acted_on(const State& state, const Limits& limits, Timestamp now);

/// Whether one more act may be done on `node`. Empty: yes, and it counts from here on. Else why not, in words; a node
/// too many opens the breaker. Pure but for `state`.
std::string take_act(State& state, const Limits& limits, const std::string& node, Timestamp now);

}  // namespace vramtrack::actuate

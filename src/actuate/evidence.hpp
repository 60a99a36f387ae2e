// Evidence: the current view of a machine's agent, compared with an alert. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "act/ladder.hpp"
#include "actuate/webhook.hpp"
#include "core/result.hpp"
#include "core/view.hpp"

namespace vramtrack::actuate {

/// Why no action is taken on an alert.
enum class Refusal : std::uint8_t {
  bad_label,    ///< its labels do not name an agent and one node
  not_listed,   ///< they name a host that is not listed as an agent (agent_hosts.hpp)
  no_agent,     ///< no agent answers, and there is no rescan
  not_current,  ///< the agent's data is not current: check_current()
  no_evidence,  ///< no alert is active there any more
  mismatch,     ///< the alert and the agent name different hosts, processes or jobs
  no_policy,    ///< no policy applies to it
};
std::string_view to_string(Refusal refusal);

/// The view of a machine, from its agent or from a rescan.
struct Witness {
  std::string host;  ///< the machine's own name for itself; empty: unknown
  View view;
  std::string simulated = {};  ///< the scenario that the agent simulates; empty: it watches a real machine
};

/// Whether two names mean the same machine: "gn1.cluster" and "gn1" do, two addresses with dots do not.
bool is_same_host(const std::string& one, const std::string& other);

/// Whether `witness` is evidence at `now`, the local time of day. Errors: it is simulated, its clock has no date, or
/// the time of its last sample differs from `now` by more than a few of its sampling periods, in either direction: the
/// agent has stopped sampling, or its clock differs. A series whose own last sample is that old counts as one of a
/// device that does not answer.
Status check_current(Witness& witness, Timestamp now);

/// `witness` with every series on `node`: the node distinguishes the series of a fleet.
act::Observation observation_of(Witness witness, const std::string& node);

struct Evidence {
  std::optional<act::Subject> subject;
  Refusal refusal = Refusal::no_evidence;  ///< if there is no subject
  std::string why;                         ///< likewise, in words
};

/// The subject of `seen` that the claim of `one` is about: its GPU by the labels UUID, uuid or gpu_uuid, otherwise gpu;
/// its process by pid and pid_start_ticks; its job by slurm_job_id or hpc_job; its host by Hostname or hostname. Labels
/// that the alert lacks are not compared. If several match, the worst. A climb that has a subject gets the same one, or
/// none. The alert's labels become labels of the subject, except for those that the agent itself gave.
Evidence evidence_of(const act::Climb& one, const std::string& node, const std::string& witness_host,
                     const act::Observation& seen);

/// The process of `subject` in its current state. Errors: its alert is no longer active, or user or job have changed.
/// `view` has its series on the subject's node.
Result<ProcessInfo> same_process(const act::Subject& subject, const View& view);

/// Puts every series of `view` on `node`.
void put_on_node(View& view, const std::string& node);

}  // namespace vramtrack::actuate

// Evidence: what the agent of a machine says now, held against what an alert claims. Pure.
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

/// Why nothing is done about an alert.
enum class Refusal : std::uint8_t {
  bad_label,    ///< its labels do not name an agent and one node
  not_listed,   ///< they name a host that is not listed as an agent (agent_hosts.hpp)
  no_agent,     ///< no agent answers, and there is no rescan
  not_current,  ///< what the agent says is not what is now: check_current()
  no_evidence,  ///< no alert is active there any more
  mismatch,     ///< the alert and the agent speak of different hosts, processes or jobs
  no_policy,    ///< no policy applies to it
};
std::string_view to_string(Refusal refusal);

/// What an agent, or a rescan, says of a machine.
struct Witness {
  std::string host;  ///< as the machine names itself; empty: not known
  View view;
  std::string simulated = {};  ///< the scenario that the agent makes up; empty: it watches a machine
};

/// Whether two names are of one machine: "gn1.cluster" and "gn1" are, two addresses with dots are not.
bool is_same_host(const std::string& one, const std::string& other);

/// Whether `witness` is evidence at `now`, the time of day here: an error if it is simulated, its clock has no date, or
/// the time of its last sample differs from `now` by more than a few of its sampling periods, in either direction: then
/// the agent has stopped sampling, or its clock runs differently. A series of it whose own last sample is as old counts
/// as one of a device that does not answer.
Status check_current(Witness& witness, Timestamp now);

/// `witness` with every series on `node`: what makes the series of a fleet distinct.
act::Observation observation_of(Witness witness, const std::string& node);

struct Evidence {
  std::optional<act::Subject> subject;
  Refusal refusal = Refusal::no_evidence;  ///< without a subject
  std::string why;                         ///< likewise, in words
};

/// The subject of `seen` that the claim of `one` is about: its GPU by the labels UUID, uuid or gpu_uuid, else gpu; its
/// process by pid and pid_start_ticks; its job by slurm_job_id or hpc_job; its host by Hostname or hostname. What the
/// alert does not name is not compared. Of several the worst. A climb that has its subject gets this one, or none. The
/// alert's labels become labels of the subject, except for those that the agent itself gave.
Evidence evidence_of(const act::Climb& one, const std::string& node, const std::string& witness_host,
                     const act::Observation& seen);

/// The process of `subject`, as it is now. Errors: its alert does not stand any more, or user or job have
/// changed. `view` has its series on the subject's node.
Result<ProcessInfo> same_process(const act::Subject& subject, const View& view);

/// Puts every series of `view` on `node`.
void put_on_node(View& view, const std::string& node);

}  // namespace vramtrack::actuate

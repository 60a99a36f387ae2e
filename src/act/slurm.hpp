// Slurm: the actions' queries and commands, through Slurm's own programs (squeue, scontrol, scancel, sinfo) and without
// a shell. Users write job names, comments and commands, so these are never read; only fields that Slurm itself sets
// are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "act/action.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

/// A job, as reported by the controller.
struct SlurmJob {
  std::string id;  ///< as Slurm's programs expect it: "1234", or "1200_3" of an array ("1200" would mean all its tasks)
  std::string state;  ///< "RUNNING"
  std::string user;
  std::string uid;
  std::string batch_host;      ///< the node of the batch script; empty while it waits
  std::string excluded_nodes;  ///< as a host list; empty: none

  [[nodiscard]] bool is_of(const std::string& user_or_uid) const { return user_or_uid == user || user_or_uid == uid; }
};

/// The job of the subject's cgroup ("1234.batch" belongs to job 1234), as the controller reports it now. Errors: the
/// subject is not in a job, the controller has no such job or does not answer, or the job and process users differ.
Result<SlurmJob> slurm_job(const Subject& subject, const Tools& tools);

/// Parses the output of `squeue -h -o kSlurmJobFormat` for the job with the number `number`. Pure.
Result<SlurmJob> parse_slurm_job(std::string_view text, std::string_view number);
inline constexpr const char* kSlurmJobFormat = "%A|%F|%K|%T|%u|%U|%B|%x";

/// Sends the signal to the job's batch script and, with `to_steps`, also to its steps. Errors: the controller does not
/// answer, or rejects it.
Status slurm_signal(const SlurmJob& job, int signal, bool to_steps, const Tools& tools);

/// Whether the job has reported that it saved its work in this run: its comment is "vramtrack saved N", where N is its
/// restart count (`SLURM_RESTART_COUNT`). Nothing else in it is read. False if Slurm does not answer.
bool slurm_has_saved(const Subject& subject, const Tools& tools);
/// Parses the output of `squeue -h -O kSlurmSavedFormat`. Pure.
bool parse_slurm_saved(std::string_view text);
inline constexpr const char* kSlurmSavedFormat = "RestartCnt:12,Comment:40";

/// Puts the job back into the queue, which ends it on this node. It restarts at once instead of after the two minutes
/// that Slurm would otherwise wait, and not on the same node; with `is_held`, it waits until a person releases it.
/// Blocks until the job has left its node, at most timeout_s. Errors: it is not a batch job, or may not be requeued
/// (`Requeue=0`).
Result<std::string> slurm_requeue(const SlurmJob& job, const Tools& tools, bool is_held, bool is_elsewhere,
                                  double timeout_s);

/// The second half of requeueing, for a job that a crash may have interrupted there: waits until the job has left its
/// node, and then sets where and when it starts. `node`: where it must not start; empty: it may start anywhere.
Result<std::string> slurm_after_requeue(const SlurmJob& job, const Tools& tools, bool is_held, const std::string& node,
                                        double timeout_s);

/// Which jobs besides the subject's to look for.
struct Neighbours {
  std::string node;                     ///< the node they run on
  std::string except;                   ///< the subject's job, "1234.batch"; empty: the subject is not in a job
  std::vector<std::string> users;       ///< the job's user is one of these; empty: any user
  std::vector<std::string> partitions;  ///< the job's partition is one of these; empty: any
};

/// The jobs whose batch script runs on the node, ordered by number. Errors: the controller does not answer.
Result<std::vector<SlurmJob>> slurm_neighbours(const Neighbours& wanted, const Tools& tools);

struct SlurmNode {
  std::string state;   ///< "mixed", "drained", "idle"
  std::string reason;  ///< "none" if there is none

  [[nodiscard]] bool is_drained() const { return state.starts_with("drain"); }
};
Result<SlurmNode> slurm_node(const std::string& node, const Tools& tools);

}  // namespace vramtrack::act

#include "act/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "act/policy.hpp"
#include "core/ascii.hpp"
#include "core/order.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

using std::chrono::steady_clock;

constexpr double kAnswer_s = 20;  ///< Slurm's own programs wait 10 s for the controller
constexpr std::chrono::milliseconds kLook{250};

/// For the number of a job, task or restart.
bool is_slurm_number(std::string_view text) {
  constexpr std::size_t kMostDigits = 10;
  return text.size() <= kMostDigits && is_all_digits(text);
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// squeue writes "None", "(null)" or "n/a" for an empty field, depending on the field and the version.
std::string unless_nothing(const std::string& text) {
  for (const char* nothing : {"None", "none", "(null)", "n/a", "N/A"})
    if (text == nothing) return {};
  return text;
}

Result<SlurmJob> ask(const std::string& id, std::string_view number, const Tools& tools) {
  const auto text = tools.run({"squeue", "-h", "-j", id, "-t", "all", "-o", kSlurmJobFormat}, kAnswer_s);
  if (!text) return fail(text.error());
  return parse_slurm_job(*text, number);
}

}  // namespace

Result<SlurmJob> parse_slurm_job(std::string_view text, std::string_view number) {
  for (const std::string& line : split(text, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() != 8 || fields[0] != number) continue;
    SlurmJob job;
    job.id = is_slurm_number(fields[2]) ? fields[1] + '_' + fields[2] : fields[0];
    job.state = fields[3];
    job.user = fields[4];
    job.uid = fields[5];
    job.batch_host = unless_nothing(fields[6]);
    job.excluded_nodes = unless_nothing(fields[7]);
    return job;
  }
  return fail(fmt::format("Slurm no longer knows job {}", printable(number)));
}

Result<SlurmJob> slurm_job(const Subject& subject, const Tools& tools) {
  const std::string number = job_number(subject.job);
  if (subject.job.empty()) return fail("the process is not running in a Slurm job: its cgroup names none");
  if (!is_slurm_number(number))
    return fail(fmt::format("'{}' is not the number of a Slurm job", printable(subject.job)));
  auto job = ask(number, number, tools);
  if (job && !job->is_of(subject.user))
    return fail(fmt::format("job {} belongs to user {}, but the process belongs to {}: it is not part of that job",
                            number, printable(job->user), printable(subject.user)));
  return job;
}

bool parse_slurm_saved(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  const std::string_view restarts = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), restarts.size()));
  const std::size_t first = text.find_first_not_of(' ');
  const std::size_t last = text.find_last_not_of(' ');
  if (first == std::string_view::npos || !is_slurm_number(restarts)) return false;
  return text.substr(first, last + 1 - first) == fmt::format("vramtrack saved {}", restarts);
}

bool slurm_has_saved(const Subject& subject, const Tools& tools) {
  const std::string number = job_number(subject.job);
  if (!is_slurm_number(number)) return false;
  const auto text = tools.run({"squeue", "-h", "-j", number, "-O", kSlurmSavedFormat}, kAnswer_s);
  return text && parse_slurm_saved(*text);
}

Status slurm_signal(const SlurmJob& job, int signal, bool to_steps, const Tools& tools) {
  const std::string name = signal_name(signal);
  const auto sent = tools.run(
      {"scancel", to_steps ? "--full" : "--batch", "--signal=" + name.substr(name.starts_with("SIG") ? 3 : 0), job.id},
      kAnswer_s);
  return sent ? Status() : fail(sent.error());
}

Result<std::vector<SlurmJob>> slurm_neighbours(const Neighbours& wanted, const Tools& tools) {
  const auto text = tools.run(
      {"squeue", "-h", "-t", "RUNNING", "-w", wanted.node, "-o", std::string("%P|") + kSlurmJobFormat}, kAnswer_s);
  if (!text) return fail(text.error());
  const auto is_in = [](const std::vector<std::string>& list, const std::string& name) {
    return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
  };
  std::vector<SlurmJob> jobs;
  for (const std::string& line : split(*text, '\n')) {
    const std::size_t bar = line.find('|');
    if (bar == std::string::npos || !is_in(wanted.partitions, line.substr(0, bar))) continue;
    const std::string fields = line.substr(bar + 1);
    const std::string number = fields.substr(0, fields.find('|'));
    if (!is_slurm_number(number) || number == job_number(wanted.except)) continue;
    auto job = parse_slurm_job(fields, number);
    // A job on several nodes ends on all of them, so it is moved only from the node on which its script runs.
    if (!job || job->batch_host != wanted.node) continue;
    if (is_in(wanted.users, job->user) || is_in(wanted.users, job->uid)) jobs.push_back(std::move(*job));
  }
  order(jobs, [](const SlurmJob& a, const SlurmJob& b) {
    return a.id.size() != b.id.size() ? a.id.size() < b.id.size() : a.id < b.id;
  });
  return jobs;
}

Result<std::string> slurm_requeue(const SlurmJob& job, const Tools& tools, bool is_held, bool is_elsewhere,
                                  double timeout_s) {
  const auto requeued = tools.run({"scontrol", is_held ? "requeuehold" : "requeue", job.id}, kAnswer_s);
  if (!requeued) return fail(requeued.error());
  return slurm_after_requeue(job, tools, is_held, is_elsewhere ? job.batch_host : std::string(), timeout_s);
}

Result<std::string> slurm_after_requeue(const SlurmJob& job, const Tools& tools, bool is_held, const std::string& node,
                                        double timeout_s) {
  // Nodes can be excluded only once the job is pending, and it is pending only once its processes have ended.
  const auto deadline = steady_clock::now() +
                        std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(timeout_s));
  // For a job array, the number of the running task differs from the one to query.
  for (;;) {
    const auto text = tools.run({"squeue", "-h", "-j", job.id, "-t", "all", "-o", "%T"}, kAnswer_s);
    if (text && (text->starts_with("PENDING") || text->starts_with("REQUEUE_HOLD"))) break;
    if (steady_clock::now() >= deadline)
      return fail(fmt::format(
          "job {} was requeued, but its processes had not ended after {:.3g} s: it starts when Slurm's waiting "
          "time is over, perhaps on this node",
          job.id, timeout_s));
    std::this_thread::sleep_for(kLook);
  }
  std::vector<std::string> update = {"scontrol", "update", "JobId=" + job.id};
  const bool excludes = !node.empty();
  if (excludes) update.push_back("ExcNodeList=" + job.excluded_nodes + (job.excluded_nodes.empty() ? "" : ",") + node);
  if (!is_held) update.emplace_back("StartTime=now");
  if (update.size() > 3)
    if (const auto updated = tools.run(update, kAnswer_s); !updated)
      return fail(fmt::format("job {} was requeued, but not changed: {}", job.id, updated.error().message));
  return fmt::format("job {} was requeued{}{}", job.id, is_held ? " and is held" : "",
                     excludes ? ", excluding " + node : std::string());
}

Result<SlurmNode> slurm_node(const std::string& node, const Tools& tools) {
  const auto text = tools.run({"sinfo", "-h", "-N", "-n", node, "-o", "%T|%E"}, kAnswer_s);
  if (!text) return fail(text.error());
  const std::string line = text->substr(0, text->find('\n'));
  const std::size_t bar = line.find('|');
  if (bar == std::string::npos)
    return fail(fmt::format("Slurm has no node {}; give its name with 'node'", printable(node)));
  return SlurmNode{line.substr(0, bar), line.substr(bar + 1)};
}

}  // namespace vramtrack::act

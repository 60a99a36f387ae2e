#include "cli/earlier_runs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/cmd_trace.hpp"
#include "core/format.hpp"
#include "core/median.hpp"
#include "core/printable.hpp"
#include "host/command_line.hpp"
#include "live/containment.hpp"
#include "live/program_store.hpp"
#include "store/store.hpp"

namespace vramtrack::cli {
namespace {

ProgramIdentity identity_of(std::string command) {
  ProcessInfo process;
  process.user = own_user_name();
  process.command = std::move(command);
  return program_identity(process);
}

/// The sum of the peaks of the command's processes in a trace.
Result<double> traced_peak(const std::string& file, const ProgramIdentity& wanted) {
  trace::Symbols symbols;
  const auto run = open_run({file}, TraceOptions{}, symbols, nullptr);
  if (!run) return fail(run.error());
  double bytes = 0;
  bool is_there = false;
  for (const auto& process : (*run)->trace.processes()) {
    if (identity_of(process->command()).text != wanted.text) continue;
    is_there = true;
    bytes += static_cast<double>(process->peak_bytes());
  }
  if (is_there) return bytes;
  return fail(fmt::format("{}: a trace of {}, not of this command; a command is the same if its words are", file,
                          printable((*run)->trace.program())));
}

}  // namespace

Status check_traces(const std::vector<std::string>& command, const std::vector<std::string>& traces) {
  if (!command.empty() || traces.empty()) return {};
  return fail(
      "--trace shows what runs of a command needed: name the command after the options, as in '--trace FILE -- python "
      "train.py'");
}

RunsNeed need_of(const Program& program) {
  RunsNeed out;
  std::vector<double> settled_bytes;
  std::vector<double> warm_up_s;
  for (const FinishedRun& run : program.recent) {
    out.most_bytes = std::max(out.most_bytes, run.peak_bytes);
    if (run.outcome != RunOutcome::settled) continue;
    settled_bytes.push_back(run.settled_bytes);
    if (run.seen_from_start) warm_up_s.push_back(run.warm_up_s);
  }
  if (!settled_bytes.empty()) out.usual_bytes = median(settled_bytes);
  if (!warm_up_s.empty()) out.warm_up_s = median(warm_up_s);
  return out;
}

double EarlierRuns::most_bytes() const {
  double most = watched ? need_of(*watched).most_bytes : 0;
  for (const double bytes : traced_bytes) most = std::max(most, bytes);
  return most;
}

Result<EarlierRuns> earlier_runs(const std::vector<std::string>& command, const std::string& store,
                                 const std::vector<std::string>& traces) {
  const ProgramIdentity wanted = identity_of(command_line(joined(command, " ")));
  EarlierRuns out;
  out.name = wanted.name;
  for (const std::string& file : traces) {
    const auto bytes = traced_peak(file, wanted);
    if (!bytes) return fail(bytes.error());
    out.traced_bytes.push_back(*bytes);
  }
  const auto reader = StoreReader::open(store);
  if (!reader && !traces.empty()) return out;
  if (!reader) return fail(reader.error());
  const auto known = (*reader)->programs();
  if (!known) return fail(known.error());
  const std::string key = program_key(wanted);
  const auto at = std::find_if(known->begin(), known->end(), [&key](const Program& p) { return p.key == key; });
  if (at != known->end()) out.watched = *at;
  return out;
}

std::string earlier_runs_text(const EarlierRuns& runs) {
  std::string out;
  if (runs.watched) {
    const Program& program = *runs.watched;
    const RunsNeed need = need_of(program);
    out += fmt::format("{} ({}): {}, {} leaked, {} ran out of memory\n", program.name, program.user,
                       format_count(program.runs, "earlier run"), program.leaked, program.out_of_memory);
    if (need.usual_bytes) out += fmt::format("  usually {}", format_bytes(*need.usual_bytes));
    if (need.warm_up_s) out += fmt::format(" after {}", format_span(*need.warm_up_s));
    out += fmt::format("{}at most {}\n", need.usual_bytes ? ", " : "  ", format_bytes(need.most_bytes));
  } else {
    out += runs.name + "\n";
  }
  std::vector<double> traced_bytes = runs.traced_bytes;
  if (!traced_bytes.empty())
    out += fmt::format(
        "  under the probe ({}): usually {} allocated at the peak, at most {}; contexts and libraries come on top of "
        "that\n",
        format_count(traced_bytes.size(), "run"), format_bytes(median(traced_bytes)),
        format_bytes(*std::max_element(traced_bytes.begin(), traced_bytes.end())));
  return out;
}

}  // namespace vramtrack::cli

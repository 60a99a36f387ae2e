#include "agent/server/launches.hpp"

#include <set>

#include "host/launch.hpp"

namespace vramtrack::agent {

std::string Launches::find(const ProcessKey& process) {
  const std::lock_guard lock(mutex_);
  std::string& launch = known_[{process.pid, process.start_ticks}];
  if (launch.empty()) launch = launch_of(proc_root_, process.pid, process.start_ticks);
  return launch;
}

void Launches::keep(const View& view) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
  for (const SeriesView& s : view.series) {
    if (s.key.pid != 0) seen.emplace(s.key.pid, s.key.pid_start_ticks);
    if (s.verdict.suspect) seen.emplace(s.verdict.suspect->pid, s.verdict.suspect->pid_start_ticks);
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [&](const auto& process) { return !seen.contains(process.first); });
}

}  // namespace vramtrack::agent

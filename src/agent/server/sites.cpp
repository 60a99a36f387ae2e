#include "agent/server/sites.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/result.hpp"
#include "report/sites.hpp"
#include "run/client/ask.hpp"

namespace vramtrack::agent {
namespace {

/// Half a megabyte each at most.
constexpr std::size_t kMostRuns = 16;

/// Those whose runs may be asked.
std::set<std::uint32_t> owners(const View* view) {
  std::set<std::uint32_t> all = {::geteuid()};
  if (view == nullptr || ::geteuid() != 0) return all;
  for (const SeriesView& s : view->series)
    if (s.key.pid != 0 && s.key.host.empty() && !s.ended)
      if (const auto uid = run::owner_of_process(s.key.pid)) all.insert(*uid);
  return all;
}

}  // namespace

std::vector<ProbedProcess> ProbedSites::processes(const View* view) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (looked_ != Clock::time_point{} && now < looked_ + kLookEvery) return processes_;
  looked_ = now;
  processes_.clear();
  for (const std::uint32_t uid : owners(view))
    for (const run::ProbedPid& one : run::probed_processes(uid)) processes_.push_back({one.pid, uid});
  return processes_;
}

std::shared_ptr<ProbedSites::Run> ProbedSites::run_in(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  auto at = std::find_if(runs_.begin(), runs_.end(), [&](const auto& run) { return run->folder == folder; });
  if (at == runs_.end())
    runs_.push_front(std::make_shared<Run>(folder));
  else
    runs_.splice(runs_.begin(), runs_, at);
  if (runs_.size() > kMostRuns) runs_.pop_back();
  return runs_.front();
}

ProbedSites::Answer ProbedSites::report(std::uint32_t pid, std::uint32_t uid) {
  const auto until = Clock::now() + kPatience;
  const auto all = run::probed_processes(uid);
  const auto mine = std::find_if(all.begin(), all.end(), [&](const run::ProbedPid& one) { return one.pid == pid; });
  if (mine == all.end()) return {};
  const std::shared_ptr<Run> run = run_in(mine->folder);
  const std::unique_lock lock(run->mutex, until);
  if (!lock) return {Answer::State::busy, nullptr};
  const auto now = Clock::now();
  if (run->asked != Clock::time_point{} && now < run->asked + kAskEvery) return run->answer;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now);
  const auto told = run::ask_control(run->folder, "report", std::max(left, std::chrono::milliseconds{1}), uid);
  run->asked = Clock::now();
  run->answer = {Answer::State::not_yet, nullptr};
  if (told && told->starts_with("ok "))
    if (const auto report = parse_sites_json(std::string_view(*told).substr(3)))
      run->answer = {Answer::State::known, std::make_shared<const std::string>(sites_json(*report))};
  return run->answer;
}

}  // namespace vramtrack::agent

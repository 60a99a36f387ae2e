#include "agent/server/sites.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/result.hpp"
#include "host/small_file.hpp"
#include "report/sites.hpp"
#include "run/client/ask.hpp"

namespace vramtrack::agent {
namespace {

/// At most half a megabyte each.
constexpr std::size_t kMostRuns = 16;

/// The users whose runs may be queried.
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
  const auto answer = run::ask_control(run->folder, "report", std::max(left, std::chrono::milliseconds{1}), uid);
  run->asked = Clock::now();
  run->answer = {Answer::State::not_yet, nullptr};
  if (answer && answer->starts_with("ok "))
    if (const auto report = parse_sites_json(std::string_view(*answer).substr(3)))
      run->answer = {Answer::State::known, std::make_shared<const std::string>(sites_json(*report))};
  return run->answer;
}

void ProbedSites::read_categories(std::string_view text, Categories& into) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view process = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = process.find(':');
    const auto pid = parse_unsigned(process.substr(0, colon));
    if (colon == std::string_view::npos || !pid || *pid > UINT32_MAX) continue;
    process.remove_prefix(colon + 1);
    auto& its = into[static_cast<std::uint32_t>(*pid)];
    while (!process.empty()) {
      const std::size_t comma = std::min(process.find(','), process.size());
      const std::string_view one = process.substr(0, comma);
      process.remove_prefix(std::min(comma + 1, process.size()));
      const std::size_t equals = one.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = one.substr(0, equals);
      const auto bytes = parse_unsigned(one.substr(equals + 1));
      // Another program may answer, and the name becomes a label, so check it.
      const bool is_name =
          !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos;
      if (bytes && is_name) its.emplace_back(name, static_cast<double>(*bytes));
    }
  }
}

ProbedSites::Categories ProbedSites::categories(const View* view) {
  const std::lock_guard lock(asking_);
  const auto now = Clock::now();
  if (asked_categories_ != Clock::time_point{} && now < asked_categories_ + kAskEvery) return categories_;
  asked_categories_ = now;
  Categories found;
  std::set<std::pair<std::string, std::uint32_t>> runs;
  std::set<std::uint32_t> pids;
  for (const std::uint32_t uid : owners(view))
    for (const run::ProbedPid& one : run::probed_processes(uid)) {
      runs.emplace(one.folder, uid);
      pids.insert(one.pid);
    }
  for (const auto& [folder, uid] : runs) {
    const auto answer = run::ask_control(folder, "categories", kCategoriesPatience, uid);
    if (answer && answer->starts_with("ok ")) read_categories(std::string_view(*answer).substr(3), found);
  }
  for (auto& [pid, bytes] : categories_)
    if (pids.contains(pid)) found.try_emplace(pid, std::move(bytes));
  return categories_ = std::move(found);
}

}  // namespace vramtrack::agent

#include "top/sites_watch.hpp"

#include <algorithm>
#include <utility>

#include "run/client/ask.hpp"

namespace vramtrack::top {

Result<SitesNow> sites_of_run(std::uint32_t pid) {
  using State = SitesNow::State;
  const auto owner = run::owner_of_process(pid);
  if (!owner) return SitesNow{State::not_probed};
  const auto all = run::probed_processes(*owner);
  const auto mine = std::find_if(all.begin(), all.end(), [&](const run::ProbedPid& one) { return one.pid == pid; });
  if (mine == all.end()) return SitesNow{State::not_probed};
  const auto words = run::ask_control(mine->folder, "report", run::kControlPatience, owner);
  if (!words || !words->starts_with("ok ")) return SitesNow{State::not_yet};
  auto report = parse_sites_json(std::string_view(*words).substr(3));
  if (!report) return fail(report.error());
  return SitesNow{State::known, std::move(*report)};
}

SitesWatch::~SitesWatch() {
  if (thread_.joinable()) thread_.join();
}

SitesNow SitesWatch::look(std::uint32_t pid) {
  const std::lock_guard lock(mutex_);
  const bool is_other = pid != pid_;
  if (!is_asking_ && (is_other || Clock::now() >= next_)) {
    if (thread_.joinable()) thread_.join();  // the mutex was its last step, so it has ended
    is_asking_ = true;
    thread_ = std::thread([this, pid] { run(pid); });
  }
  return is_other ? SitesNow{} : newest_;
}

void SitesWatch::run(std::uint32_t pid) {
  auto words = ask_(pid);
  const std::lock_guard lock(mutex_);
  // Keep the previous report if there is no answer this time.
  if (words && !(words->state == SitesNow::State::not_yet && pid == pid_ && newest_.state == SitesNow::State::known))
    newest_ = std::move(*words);
  else if (pid != pid_)
    newest_ = {};
  pid_ = pid;
  next_ = Clock::now() + every_;
  is_asking_ = false;
}

}  // namespace vramtrack::top

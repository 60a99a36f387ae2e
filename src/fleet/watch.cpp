#include "fleet/watch.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "core/order.hpp"
#include "fleet/work.hpp"

namespace vramtrack::fleet {
namespace {

/// A new exporter may have capacities or images that were missing so far, so they are looked for again once in this
/// many passes.
constexpr std::uint64_t kCapacityEvery = 20;

}  // namespace

struct FleetWatch::Watched {
  explicit Watched(const Config& config) : judge(config) {}
  MachineJudge judge;
  std::optional<std::int64_t> read_until_ms;  ///< nullopt: it has never been read
  std::int64_t last_ms = 0;                   ///< of its last sample
};

FleetWatch::FleetWatch(Reader reader, const Mapping& mapping, WatchOptions options)
    : reader_(std::move(reader)), mapping_(mapping), options_(std::move(options)), images_(mapping) {}
FleetWatch::~FleetWatch() = default;

void FleetWatch::judge(const Machine& machine) {
  // Each machine is in one page, so no other thread uses this entry. The map does not change while the judges run.
  Watched& watched = *machines_.at(machine.host);
  watched.judge.take(machine);
  const auto place = std::lower_bound(latest_.machines.begin(), latest_.machines.end(), machine.host,
                                      [](const MachineVerdict& m, const std::string& host) { return m.host < host; });
  place->gpus = watched.judge.verdicts();
  for (const GpuVerdict& gpu : place->gpus)
    watched.last_ms = std::max<std::int64_t>(
        watched.last_ms, std::chrono::duration_cast<std::chrono::milliseconds>(gpu.last.time_since_epoch()).count());
}

tl::expected<void, HttpFailure> FleetWatch::pass(std::int64_t now_ms) {
  Scan read;
  ScanOptions asking = options_.scan;
  asking.plan.end_ms = now_ms;
  asking.plan.start_ms = now_ms - std::max(options_.late_ms, passes_ == 0 ? options_.history_ms : std::int64_t{0});
  auto here = answering_persistently(reader_, asking, read);
  if (!here) return tl::unexpected(here.error());
  here_ = std::move(*here);
  const auto plan = plan_persistently(*here_, mapping_, asking, roster_, read.retried_requests);
  if (!plan) return tl::unexpected(plan.error());
  read.unknown = passes_ == 0 ? unknown_metrics(*here_, mapping_, asking.plan) : std::move(latest_.unknown);
  join();
  // Every machine has its entry before the judges begin. Those without a name may come in any page.
  std::size_t most_hosts = 1;
  const auto place_for = [&](const std::string& host) {
    auto& watched = machines_[host];
    if (watched) return;
    watched = std::make_unique<Watched>(options_.scan.config);
    latest_.machines.push_back({host, {}, {}});
  };
  for (const Page& page : plan->pages) {
    most_hosts = std::max(most_hosts, page.hosts.size());
    for (const std::string& host : page.hosts) place_for(host);
    if (page.hosts.empty()) place_for("");
  }
  order(latest_.machines, [](const MachineVerdict& a, const MachineVerdict& b) { return a.host < b.host; });
  {
    Work work(options_.scan.threads, most_hosts, [this](const Machine& machine) { judge(machine); });
    bool is_part = false;
    for (const Page& page : plan->pages) {
      // Grouped by how far their machines have been read: those of a page nearly always agree.
      std::map<std::int64_t, std::vector<std::string>> by_start;
      const std::vector<std::string> nameless = {""};
      for (const std::string& host : page.hosts.empty() ? nameless : page.hosts) {
        const auto& until_ms = machines_.at(host)->read_until_ms;
        by_start[until_ms ? *until_ms - options_.late_ms : now_ms - options_.history_ms].push_back(host);
      }
      for (const auto& [start_ms, hosts] : by_start) {
        if (options_.scan.is_cancelled()) break;
        PageRequest request{page.hosts.empty() ? page : subset(page, hosts), asking.plan, false};
        request.plan.start_ms = start_ms;
        request.wants_capacity = std::any_of(hosts.begin(), hosts.end(), [&](const std::string& host) {
          const Watched& watched = *machines_.at(host);
          return !watched.read_until_ms || (passes_ % kCapacityEvery == 0 && !watched.judge.knows_capacities());
        });
        const std::size_t failures = read.unread.size();
        std::vector<Machine> machines =
            read_page(*here_, mapping_, *plan, std::move(request), options_.scan, roster_, read);
        std::vector<std::string> failed;
        // Data missing from a partial answer is read later, when it is available.
        is_part = take_lacking(*here_, read) || is_part;
        if (is_part)
          for (const std::string& host : hosts)
            if (std::none_of(machines.begin(), machines.end(), [&](const Machine& m) { return m.host == host; }))
              failed.push_back(host);
        for (Machine& machine : machines) work.put(std::move(machine));
        for (std::size_t i = failures; i < read.unread.size(); ++i)
          failed.insert(failed.end(), read.unread[i].hosts.begin(), read.unread[i].hosts.end());
        if (page.hosts.empty() && read.unread.size() > failures) failed.emplace_back();
        for (const std::string& host : hosts)
          if (std::find(failed.begin(), failed.end(), host) == failed.end()) machines_.at(host)->read_until_ms = now_ms;
      }
    }
    work.finish();
  }
  ++passes_;
  forget(now_ms);
  read.machines = std::move(latest_.machines);
  read.exporters = exporters_of(*plan);
  read.was_cancelled = options_.scan.is_cancelled();
  latest_ = std::move(read);
  if (passes_ % kCapacityEvery == 0) images_.forget_unknown();
  images_.complete(*here_, latest_, now_ms - options_.history_ms, now_ms);
  take_lacking(*here_, latest_);
  return {};
}

void FleetWatch::join() {
  std::map<std::string, std::vector<std::string>> joined;  // by the name that represents them: their names so far
  for (const auto& [host, watched] : machines_) joined[roster_.machine_of(host)].push_back(host);
  for (const auto& [name, hosts] : joined) {
    if (hosts.size() == 1 && hosts.front() == name) continue;
    if (hosts.size() == 1) machines_[name] = std::move(machines_.at(hosts.front()));
    for (const std::string& host : hosts)
      if (host != name || hosts.size() > 1) machines_.erase(host);
  }
  std::erase_if(latest_.machines, [&](MachineVerdict& machine) {
    machine.host = roster_.machine_of(machine.host);
    return !machines_.contains(machine.host);
  });
}

void FleetWatch::forget(std::int64_t now_ms) {
  std::erase_if(latest_.machines, [&](const MachineVerdict& machine) {
    const auto watched = machines_.find(machine.host);
    const bool is_gone = watched->second->read_until_ms && watched->second->last_ms < now_ms - options_.history_ms;
    if (is_gone) machines_.erase(watched);
    return is_gone;
  });
}

}  // namespace vramtrack::fleet

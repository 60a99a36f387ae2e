#include "fleet/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>

#include "core/format.hpp"
#include "core/order.hpp"
#include "fleet/context.hpp"
#include "fleet/work.hpp"
#include "host/interrupt.hpp"

namespace vramtrack::fleet {
namespace {

using Failure = HttpFailure;

constexpr int kAttempts = 3;
/// How many times to look for missing capacities: GPUs that have disappeared, or had another host, were there at other
/// times.
constexpr int kCapacityRounds = 4;

/// Retries transient failures.
template <class Request>
auto persistently(const ScanOptions& options, std::uint64_t& retried, Request request) {
  auto answer = request();
  double pause_s = options.first_pause_s;
  for (int attempt = 1; attempt < kAttempts && !answer && answer.error().kind == Failure::Kind::passing; ++attempt) {
    if (options.is_cancelled()) break;
    const auto pause = std::chrono::duration<double>(pause_s);
    if (!Interrupt::sleep_until(std::chrono::steady_clock::now() +
                                std::chrono::duration_cast<std::chrono::steady_clock::duration>(pause)))
      break;
    pause_s *= 2;
    ++retried;
    answer = request();
  }
  return answer;
}

/// Reads all samples of a page, and the capacities of its GPUs, in one attempt: after an incomplete answer, everything
/// is read again.
tl::expected<Gpus, Failure> read_once(const Reader& reader, const Mapping& mapping, const Plan& plan,
                                      const PageRequest& request, Roster& roster) {
  const Page& page = request.page;
  const PlanOptions& options = request.plan;
  Gpus gpus(mapping, roster);
  const SeriesSink samples = [&](const Labels& labels, const std::vector<Point>& points) { gpus.add(labels, points); };
  for (const Query& query : sample_queries(plan, page, options))
    if (const auto read = reader.read(query, samples); !read) return tl::unexpected(read.error());
  const SeriesSink capacities = [&](const Labels& labels, const std::vector<Point>& points) {
    gpus.add_capacity(labels, points);
  };
  std::int64_t before_ms = INT64_MAX;
  for (int round = 0; request.wants_capacity && round < kCapacityRounds; ++round) {
    const auto missing_at = gpus.capacity_missing_at(before_ms);
    if (!missing_at) break;
    before_ms = *missing_at - kCapacityMs;
    for (const Query& query : capacity_queries(plan, page, options, *missing_at))
      if (const auto read = reader.read(query, capacities); !read) return tl::unexpected(read.error());
  }
  return gpus;
}

MachineVerdict judge(const Machine& machine, const ScanOptions& options, const std::string& from) {
  MachineJudge judge(options.config);
  judge.take(machine);
  judge.end();
  return {machine.host, judge.verdicts(), options.json ? judge.json(from) : std::string()};
}

}  // namespace

std::vector<Machine> read_page(const Reader& reader, const Mapping& mapping, const Plan& plan, PageRequest request,
                               const ScanOptions& options, Roster& roster, Scan& into) {
  std::vector<Machine> out;
  std::deque<Page> pages = {std::move(request.page)};
  while (!pages.empty() && !options.is_cancelled()) {
    request.page = std::move(pages.front());
    pages.pop_front();
    auto gpus =
        persistently(options, into.retried_requests, [&] { return read_once(reader, mapping, plan, request, roster); });
    if (!gpus) {
      if (gpus.error().kind == Failure::Kind::cancelled) break;
      std::vector<Page> parts = halves(request.page);
      if (gpus.error().kind != Failure::Kind::too_much || parts.empty())
        into.unread.push_back({request.page.hosts, gpus.error().why});
      else
        pages.insert(pages.end(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
      continue;
    }
    into.samples += gpus->samples();
    into.blank_values += gpus->blank_values();
    into.unnamed_series += gpus->unnamed_series();
    // Data that was not requested is ignored: each machine is in one page.
    for (auto& [host, machine] : gpus->take())
      if (request.page.hosts.empty() ? host.empty()
                                     : std::binary_search(request.page.hosts.begin(), request.page.hosts.end(), host))
        out.push_back(std::move(machine));
  }
  return out;
}

std::vector<std::string> exporters_of(const Plan& plan) {
  std::vector<std::string> out;
  for (const Source& source : plan.sources)
    if (std::find(out.begin(), out.end(), source.exporter->name) == out.end()) out.push_back(source.exporter->name);
  return out;
}

tl::expected<Plan, Failure> plan_persistently(const Reader& reader, const Mapping& mapping, const ScanOptions& options,
                                              Roster& roster, std::uint64_t& retried) {
  return persistently(options, retried, [&] { return make_plan(reader, mapping, options.plan, roster); });
}

tl::expected<Reader, Failure> answering_persistently(Reader& reader, const ScanOptions& options, Scan& into) {
  std::vector<AwayServer> away;
  auto here = persistently(options, into.retried_requests, [&]() -> tl::expected<Reader, Failure> {
    away.clear();
    Reader answering = reader.answering(away);
    const auto in_passing = std::find_if(away.begin(), away.end(), [](const AwayServer& server) {
      return server.failure.kind == Failure::Kind::passing;
    });
    if (in_passing != away.end()) return tl::unexpected(in_passing->failure);
    return answering;
  });
  if (!here) here = reader.answering(away = {});
  if (here->servers() == 0) return tl::unexpected(away.front().failure);
  for (AwayServer& server : away) into.unread.push_back({{}, std::move(server.failure.why), std::move(server.origin)});
  return here;
}

std::vector<UnknownMetric> unknown_metrics(const Reader& reader, const Mapping& mapping, const PlanOptions& plan) {
  return unknown_metrics(reader, mapping, Query{plan.only, plan.start_ms, plan.end_ms});
}

bool take_lacking(const Reader& reader, Scan& into) {
  const auto lacking = reader.take_lacking();
  for (const auto& [server, why] : lacking) {
    const auto is_of_it = [&name = server](const Unread& u) { return u.is_part && u.server == name; };
    if (std::none_of(into.unread.begin(), into.unread.end(), is_of_it)) into.unread.push_back({{}, why, server, true});
  }
  return !lacking.empty();
}

std::string words_of(const Unread& unread) {
  if (unread.is_part) return fmt::format("part of what the server {} has", unread.server);
  if (!unread.server.empty()) return "the server " + unread.server;
  return unread.hosts.empty() ? "series without a host" : format_count(unread.hosts.size(), "machine");
}

std::set<std::string> hosts_of(const Scan& scan) {
  std::set<std::string> out;
  for (const MachineVerdict& machine : scan.machines)
    for (const GpuVerdict& gpu : machine.gpus) out.insert(gpu.device.host);
  return out;
}

tl::expected<Scan, Failure> scan(const Reader& reader, const Mapping& mapping, const ScanOptions& options,
                                 const ScanProgress& progress) {
  Scan out;
  Roster roster;
  const auto plan = plan_persistently(reader, mapping, options, roster, out.retried_requests);
  if (!plan) return tl::unexpected(plan.error());
  out.exporters = exporters_of(*plan);
  std::size_t most_hosts = 1;
  for (const Page& page : plan->pages) most_hosts = std::max(most_hosts, page.hosts.size());
  std::mutex results;
  std::uint64_t samples = 0;
  const std::string from = reader.origin();
  Work work(options.threads, most_hosts, [&](const Machine& machine) {
    MachineVerdict verdict = judge(machine, options, from);
    const std::scoped_lock lock(results);
    for (const GpuVerdict& gpu : verdict.gpus) samples += gpu.samples;
    out.machines.push_back(std::move(verdict));
    progress(out.machines.size(), plan->hosts, samples);
  });
  Scan read;  // written only by the reading thread
  for (const Page& page : plan->pages) {
    if (options.is_cancelled()) break;
    for (Machine& machine : read_page(reader, mapping, *plan, {page, options.plan, true}, options, roster, read))
      work.put(std::move(machine));
  }
  work.finish();
  out.was_cancelled = options.is_cancelled();
  if (!out.was_cancelled) Images(mapping).complete(reader, out, options.plan.start_ms, options.plan.end_ms);
  order(out.machines, [](const MachineVerdict& a, const MachineVerdict& b) { return a.host < b.host; });
  out.unread = std::move(read.unread);
  take_lacking(reader, out);
  out.samples = read.samples;
  out.blank_values = read.blank_values;
  out.unnamed_series = read.unnamed_series;
  out.retried_requests += read.retried_requests;
  return out;
}

}  // namespace vramtrack::fleet

#include "fleet/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/number_text.hpp"
#include "fleet/identity.hpp"

namespace vramtrack::fleet {
namespace {

template <class T>
using Answer = tl::expected<T, HttpFailure>;

/// The size of a page: about this many samples, so that it takes some ten megabytes and one second with eight GPUs per
/// machine and a value every 15 s; and no more characters of names than VictoriaMetrics accepts in a query (16 KiB).
constexpr std::int64_t kPageSamples = 3'000'000;
constexpr std::int64_t kSamplesPerHostAndMs = 15'000 / 8;  // milliseconds per sample of a machine
constexpr std::size_t kPageCharacters = 10'000;

Matcher metrics_of(const std::vector<std::string>& names) {
  return {"__name__", alternation_of(names), true};
}

/// The metrics with which an exporter reports memory over time.
const Names& memory_names(const Exporter& exporter, bool has_free_only) {
  return has_free_only ? exporter.free : exporter.used;
}

Names sample_names(const Source& source) {
  const Exporter& exporter = *source.exporter;
  Names names = memory_names(exporter, source.has_free_only);
  names.insert(names.end(), exporter.process.begin(), exporter.process.end());
  names.insert(names.end(), exporter.busy.begin(), exporter.busy.end());
  names.insert(names.end(), exporter.received.begin(), exporter.received.end());
  return names;
}

Query query_of(const Source& source, const Page::Part& part, const Names& metrics, const PlanOptions& options) {
  Query query;
  query.matchers.push_back(metrics_of(metrics));
  query.matchers.insert(query.matchers.end(), source.matchers.begin(), source.matchers.end());
  if (!source.label.empty()) query.matchers.push_back({source.label, alternation_of(part.values), true});
  query.matchers.insert(query.matchers.end(), options.only.begin(), options.only.end());
  query.start_ms = options.start_ms;
  query.end_ms = options.end_ms;
  return query;
}

/// For each name of a machine: the sources that have it, and its value there.
using SourcesByHost = std::map<std::string, std::vector<std::pair<std::size_t, std::string>>>;

/// Finds the machines of an exporter's series: for each label that may name them, its values where the preceding labels
/// are empty. Machines that have only free memory are added to those with used memory.
Answer<void> find_hosts(const Reader& reader, const Exporter& exporter, bool has_free_only, const PlanOptions& options,
                        Plan& plan, SourcesByHost& hosts) {
  const auto has_used = [&](const std::string& host) {
    const auto known = hosts.find(host);
    return known != hosts.end() && std::any_of(known->second.begin(), known->second.end(), [&](const auto& place) {
             const Source& source = plan.sources[place.first];
             return source.exporter == &exporter && !source.has_free_only;
           });
  };
  Query query;
  query.start_ms = options.start_ms;
  query.end_ms = options.end_ms;
  query.matchers.push_back(metrics_of(memory_names(exporter, has_free_only)));
  query.matchers.insert(query.matchers.end(), options.only.begin(), options.only.end());
  std::vector<Matcher> empty;
  for (const std::string& label : exporter.host_labels) {
    auto values = reader.label_values(label, query);
    if (!values) return tl::unexpected(values.error());
    std::erase(*values, "");
    if (!values->empty()) {
      plan.sources.push_back({&exporter, empty, label, has_free_only});
      for (const std::string& value : *values)
        if (const std::string host = host_of(value); !(has_free_only && has_used(host)))
          hosts[host].emplace_back(plan.sources.size() - 1, value);
    }
    empty.push_back({label, "", false});
    query.matchers.push_back(empty.back());
  }
  return {};
}

/// Finds the exporters' pods: those scraped in the same way as the GPUs. If this information is not available, the
/// GPUs' labels are the only sign.
void learn_exporters(const Reader& reader, const Query& memory, Roster& roster) {
  const auto jobs = reader.label_values("job", memory);
  if (!jobs || jobs->empty()) return;
  const Query scrapes{
      {{"__name__", "up", false}, {"job", alternation_of(*jobs), true}}, memory.start_ms, memory.end_ms};
  if (const auto pods = reader.label_values("pod", scrapes))
    for (const std::string& pod : *pods) roster.add_exporter_pod(pod);
  if (const auto containers = reader.label_values("container", scrapes))
    for (const std::string& container : *containers) roster.add_exporter_container(container);
}

/// Finds the GPUs of machines that the roster does not know.
Answer<void> learn_hosts(const Reader& reader, const Mapping& mapping, const PlanOptions& options, const Plan& plan,
                         const SourcesByHost& hosts, Roster& roster) {
  constexpr std::size_t kMostCharacters = 2000;  // about a hundred machines and their workloads
  std::map<std::size_t, std::vector<std::string>> unknown;
  for (const auto& [host, sources] : hosts)
    if (!roster.knows(host))
      for (const auto& [source, value] : sources) unknown[source].push_back(value);
  for (const auto& [source, values] : unknown) {
    const Source& from = plan.sources[source];
    for (std::size_t i = 0; i < values.size();) {
      Page::Part part{source, {}, {}};
      for (std::size_t characters = 0; i < values.size() && characters < kMostCharacters; ++i) {
        characters += values[i].size() + 1;
        part.values.push_back(values[i]);
      }
      const auto series =
          reader.series(query_of(from, part, memory_names(*from.exporter, from.has_free_only), options));
      if (!series) return tl::unexpected(series.error());
      for (const Labels& labels : *series)
        if (const auto seen = identify(labels, *from.exporter, mapping.workload(), roster); seen) roster.add(*seen);
    }
  }
  for (const auto& [host, sources] : hosts) roster.add_host(host);
  return {};
}

}  // namespace

Result<Shard> parse_shard(std::string_view text) {
  Shard shard;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    shard.index = parse_number<std::uint32_t>(text.substr(0, slash)).value_or(0);
    shard.count = parse_number<std::uint32_t>(text.substr(slash + 1)).value_or(0);
  }
  if (slash == std::string_view::npos || shard.index == 0 || shard.index > shard.count)
    return fail(fmt::format("\"{}\" is not a shard; expected, for example, 2/8, the second of eight", text));
  --shard.index;
  return shard;
}

bool is_in_shard(std::string_view host, Shard shard) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : host) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return (hash ^ (hash >> 32)) % shard.count == shard.index;
}

Answer<Plan> make_plan(const Reader& reader, const Mapping& mapping, const PlanOptions& options, Roster& roster) {
  Plan plan;
  Names all;
  for (const Exporter& exporter : mapping.exporters())
    for (const bool free : {false, true}) {
      const Names& names = memory_names(exporter, free);
      all.insert(all.end(), names.begin(), names.end());
    }
  Query query;
  query.start_ms = options.start_ms;
  query.end_ms = options.end_ms;
  query.matchers.push_back(metrics_of(all));
  query.matchers.insert(query.matchers.end(), options.only.begin(), options.only.end());
  const auto present = reader.label_values("__name__", query);
  if (!present) return tl::unexpected(present.error());
  learn_exporters(reader, query, roster);
  SourcesByHost names;
  std::vector<std::size_t> nameless;
  for (const Exporter& exporter : mapping.exporters()) {
    const auto is_present = [&](const std::string& name) {
      return std::find(present->begin(), present->end(), name) != present->end();
    };
    const bool has_used = std::any_of(exporter.used.begin(), exporter.used.end(), is_present);
    const bool has_free =
        !exporter.total.empty() && std::any_of(exporter.free.begin(), exporter.free.end(), is_present);
    if (!has_used && !has_free) continue;
    for (const bool free_only : {false, true})
      if (free_only ? has_free : has_used)
        if (const auto found = find_hosts(reader, exporter, free_only, options, plan, names); !found)
          return tl::unexpected(found.error());
    // Series without any label for a host: rare, and read with one request.
    std::vector<Matcher> empty;
    for (const std::string& label : exporter.host_labels) empty.push_back({label, "", false});
    if (is_in_shard("", options.shard)) {
      nameless.push_back(plan.sources.size());
      plan.sources.push_back({&exporter, std::move(empty), {}, !has_used});
    }
  }
  if (const auto learnt = learn_hosts(reader, mapping, options, plan, names, roster); !learnt)
    return tl::unexpected(learnt.error());
  SourcesByHost hosts;
  for (const auto& [name, sources] : names)
    if (const std::string host = roster.machine_of(name); is_in_shard(host, options.shard))
      hosts[host].insert(hosts[host].end(), sources.begin(), sources.end());
  plan.hosts = hosts.size();
  const std::int64_t length_ms = std::max<std::int64_t>(options.end_ms - options.start_ms, 1);
  const auto most_hosts =
      static_cast<std::size_t>(std::clamp<std::int64_t>(kPageSamples * kSamplesPerHostAndMs / length_ms, 1, 100'000));
  std::map<std::size_t, Page::Part> parts;
  std::size_t characters = 0;
  Page page;
  const auto close = [&] {
    for (auto& [source, part] : parts) page.parts.push_back(std::move(part));
    if (!page.parts.empty()) plan.pages.push_back(std::move(page));
    page = {};
    parts.clear();
    characters = 0;
  };
  for (const auto& [host, sources] : hosts) {
    page.hosts.push_back(host);
    for (const auto& [source, value] : sources) {
      Page::Part& part = parts[source];
      part.source = source;
      part.values.push_back(value);
      part.hosts.push_back(host);
      characters += value.size() + 1;
    }
    if (page.hosts.size() >= most_hosts || characters >= kPageCharacters) close();
  }
  close();
  for (const std::size_t source : nameless) parts[source].source = source;
  close();
  return plan;
}

std::vector<Query> sample_queries(const Plan& plan, const Page& page, const PlanOptions& options) {
  std::vector<Query> out;
  for (const Page::Part& part : page.parts) {
    const Source& source = plan.sources[part.source];
    out.push_back(query_of(source, part, sample_names(source), options));
  }
  return out;
}

std::vector<Query> capacity_queries(const Plan& plan, const Page& page, const PlanOptions& options,
                                    std::int64_t end_ms) {
  std::vector<Query> out;
  for (const Page::Part& part : page.parts) {
    const Source& source = plan.sources[part.source];
    const Exporter& exporter = *source.exporter;
    Names names = exporter.total;
    names.insert(names.end(), exporter.free.begin(), exporter.free.end());
    names.insert(names.end(), exporter.reserved.begin(), exporter.reserved.end());
    if (names.empty()) continue;
    if (!exporter.free.empty()) names.insert(names.end(), exporter.used.begin(), exporter.used.end());
    Query query = query_of(source, part, names, options);
    query.end_ms = end_ms;
    query.start_ms = end_ms - kCapacityMs;
    out.push_back(std::move(query));
  }
  return out;
}

Page subset(const Page& page, const std::vector<std::string>& sorted_hosts) {
  Page out;
  const auto is_named = [&](const std::string& host) {
    return std::binary_search(sorted_hosts.begin(), sorted_hosts.end(), host);
  };
  std::copy_if(page.hosts.begin(), page.hosts.end(), std::back_inserter(out.hosts), is_named);
  for (const Page::Part& part : page.parts) {
    Page::Part own{part.source, {}, {}};
    for (std::size_t i = 0; i < part.values.size(); ++i)
      if (is_named(part.hosts[i])) {
        own.values.push_back(part.values[i]);
        own.hosts.push_back(part.hosts[i]);
      }
    if (!own.values.empty()) out.parts.push_back(std::move(own));
  }
  return out;
}

std::vector<Page> halves(const Page& page) {
  if (page.hosts.size() < 2) return {};
  const auto middle = page.hosts.begin() + static_cast<std::ptrdiff_t>(page.hosts.size() / 2);
  return {subset(page, {page.hosts.begin(), middle}), subset(page, {middle, page.hosts.end()})};
}

}  // namespace vramtrack::fleet

// The plan of a scan: which exporters a server has, on which machines, and the pages in which they are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleet/exporters.hpp"
#include "fleet/reader.hpp"
#include "fleet/roster.hpp"

namespace vramtrack::fleet {

/// One of n parts: a hash of a machine's name decides its part, which never changes.
struct Shard {
  std::uint32_t index = 0;  ///< from 0
  std::uint32_t count = 1;
};
/// "2/8": the second of eight. Errors state what was expected.
Result<Shard> parse_shard(std::string_view text);
bool is_in_shard(std::string_view host, Shard shard);

/// The series of one exporter that have the host in the same label.
struct Source {
  const Exporter* exporter = nullptr;
  std::vector<Matcher> matchers;  ///< labels that would have named the host first, but are empty
  std::string label;              ///< the label with the host's name; empty: no label has it
  bool has_free_only = false;     ///< it has no metric of used memory, which is then the total less the free memory
};

/// Machines that are read together, with their names in the labels of each Source.
struct Page {
  struct Part {
    std::size_t source = 0;           ///< index in Plan::sources
    std::vector<std::string> values;  ///< of its label
    std::vector<std::string> hosts;   ///< the machine of each value
  };
  std::vector<std::string> hosts;  ///< see Roster::machine_of(); sorted
  std::vector<Part> parts;
};

struct Plan {
  std::vector<Source> sources;
  std::vector<Page> pages;
  std::size_t hosts = 0;
};

struct PlanOptions {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
  Shard shard;
  std::vector<Matcher> only;  ///< from the user: labels that every series must have
};

/// Queries the server. Costs one request per exporter and host label, three for the exporters' pods, and one per
/// hundred or so machine names that the roster does not know, for their GPUs. An empty plan: the server has no known
/// exporter.
tl::expected<Plan, HttpFailure> make_plan(const Reader& reader, const Mapping& mapping, const PlanOptions& options,
                                          Roster& roster);

/// The queries for the samples of a page, one per part.
std::vector<Query> sample_queries(const Plan& plan, const Page& page, const PlanOptions& options);
/// The slowest scrape in use is one per minute: two or three of them.
constexpr std::int64_t kCapacityMs = 150'000;
/// The queries for the capacities of its GPUs, over kCapacityMs before `end_ms`.
std::vector<Query> capacity_queries(const Plan& plan, const Page& page, const PlanOptions& options,
                                    std::int64_t end_ms);

/// A page with only the named machines; without parts if none of them is in `page`.
Page subset(const Page& page, const std::vector<std::string>& sorted_hosts);
/// The two halves of a page with two or more machines; empty otherwise.
std::vector<Page> halves(const Page& page);

}  // namespace vramtrack::fleet

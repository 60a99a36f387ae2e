// The plan of a scan: which exporters a server has, on which machines, and in which pages they are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleet/exporters.hpp"
#include "fleet/reader.hpp"
#include "fleet/roster.hpp"

namespace vramtrack::fleet {

/// One part of n: machines are dealt out by a hash of their names, the same for ever.
struct Shard {
  std::uint32_t index = 0;  ///< from 0
  std::uint32_t count = 1;
};
/// "2/8": the second of eight. Errors say what was expected.
Result<Shard> parse_shard(std::string_view text);
bool is_in_shard(std::string_view host, Shard shard);

/// The series of one exporter whose host is written in one label.
struct Source {
  const Exporter* exporter = nullptr;
  std::vector<Matcher> matchers;  ///< labels that would have named the host first, and are empty
  std::string label;              ///< that names it; empty: no label does
  bool has_free_only = false;     ///< it has no metric of used memory: that is the total less what is free
};

/// Machines that are read together, with what their names are in the labels of each Source.
struct Page {
  struct Part {
    std::size_t source = 0;           ///< of Plan::sources
    std::vector<std::string> values;  ///< of its label
    std::vector<std::string> hosts;   ///< the machine of each value
  };
  std::vector<std::string> hosts;  ///< as in Roster::machine_of(), sorted
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
  std::vector<Matcher> only;  ///< of the user: labels that every series must have
};

/// Asks the server. Costs one request for each exporter and label of a host, three for the pods of exporters, and one
/// for some hundred names of machines that the roster does not know: which GPUs they have. An empty plan: no exporter
/// is known there.
tl::expected<Plan, HttpFailure> make_plan(const Reader& reader, const Mapping& mapping, const PlanOptions& options,
                                          Roster& roster);

/// The queries for the samples of a page: one for each part.
std::vector<Query> sample_queries(const Plan& plan, const Page& page, const PlanOptions& options);
/// A scrape every minute is the slowest in use: two or three of them.
constexpr std::int64_t kCapacityMs = 150'000;
/// For the capacities of its GPUs, over kCapacityMs before `end_ms`.
std::vector<Query> capacity_queries(const Plan& plan, const Page& page, const PlanOptions& options,
                                    std::int64_t end_ms);

/// The page of those of its machines that are named; without parts when none of them is in `page`.
Page subset(const Page& page, const std::vector<std::string>& sorted_hosts);
/// The two halves of a page of two machines or more; empty for others.
std::vector<Page> halves(const Page& page);

}  // namespace vramtrack::fleet

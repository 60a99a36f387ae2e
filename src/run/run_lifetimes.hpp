// RunLifetimes: turns the records of a run's probes into the lifetimes of each line's allocations, for the judge.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "probe/wire.hpp"
#include "run/collector.hpp"
#include "trace/category.hpp"
#include "trace/lifetimes_account.hpp"
#include "trace/probe_names.hpp"
#include "trace/probe_trace.hpp"
#include "trace/recent_growth.hpp"

namespace vramtrack::run {

/// Lines that have begun to rise together, which are one leak, or a cache that has begun to fill.
struct LateRise {
  std::uint32_t pid = 0;
  std::string line;                 ///< the one that probably holds the memory: "train.py:57 train_step"
  std::vector<std::string> others;  ///< the other lines, the most bytes first
  double since_s = 0;               ///< when the rise began, after the start of its process
  double lasts_s = 0;               ///< duration until now
  std::int64_t bytes = 0, blocks = 0;
  double bytes_per_s = 0;
};

/// The memory of a process by category, derived from the stacks and the calls that allocated it.
struct ProcessCategories {
  std::uint32_t pid = 0;
  std::vector<std::pair<trace::Category, std::int64_t>> bytes;  ///< categories that hold memory
};

/// Counts device memory. Memory that a framework takes from the driver and divides into blocks counts as these blocks.
/// While the probe samples, a block counts for all the memory that it represents. If records of a process were lost, it
/// is no longer reported, because a free may be among them. Not thread-safe. Memory: some 10 MiB per process, 40 bytes
/// per live block (trace::RecentGrowth), and the names of its code.
class RunLifetimes {
 public:
  /// `native` may be null, as in trace::ProbeNames.
  explicit RunLifetimes(std::unique_ptr<trace::NativeNames> native);
  ~RunLifetimes();

  void take(const ProbedProcess& process, std::span<const probe::Slot> records);
  /// The reports about processes that are due now. `now_s`: seconds since 1970.
  std::vector<trace::ProcessLifetimes> report(double now_s);
  /// The rises that began since the last call, each once. `now_s`: as in report().
  std::vector<LateRise> late_rises(double now_s);
  /// The categories of each running process.
  [[nodiscard]] std::vector<ProcessCategories> categories() const;

 private:
  struct Process;
  /// A line of the program.
  struct Site {
    std::string words;
    std::size_t depth = 0;  ///< number of own functions from the program's entry to the line
  };
  /// A line and a category, because a line that calls a model allocates weights, activations and caches.
  struct Part {
    trace::SiteNumber site = 0;
    trace::Category category = trace::Category::unknown;
  };
  trace::SiteNumber part_of(Process& process, std::uint32_t stack, probe::Call call);

  trace::Symbols symbols_;
  std::unique_ptr<trace::NativeNames> native_;
  trace::ProbeTrace texts_;  ///< the naming records: stacks, texts, modules
  trace::ProbeNames names_;
  std::map<std::size_t, std::unique_ptr<Process>> processes_;  ///< by index
  std::vector<Site> sites_;
  std::vector<Part> parts_;
  std::map<std::pair<trace::SiteNumber, trace::Category>, trace::SiteNumber> part_numbers_;
  trace::StackCategories stack_categories_{symbols_};
  std::unordered_map<std::string, trace::SiteNumber> numbers_;
};

}  // namespace vramtrack::run

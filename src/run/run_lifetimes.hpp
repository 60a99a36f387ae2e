// RunLifetimes: the records of a run's probes as lifetimes of what each line allocates, for the judge.
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

/// Lines that have begun to rise together: one leak, or a cache that has begun to fill.
struct LateRise {
  std::uint32_t pid = 0;
  std::string line;                 ///< the one that probably keeps: "train.py:57 train_step"
  std::vector<std::string> others;  ///< the most bytes first
  double since_s = 0;               ///< after the start of its process
  double lasts_s = 0;               ///< until now
  std::int64_t bytes = 0, blocks = 0;
  double bytes_per_s = 0;
};

/// What a process holds of each kind of memory, by the stacks that allocated it.
struct ProcessCategories {
  std::uint32_t pid = 0;
  std::vector<std::pair<trace::Category, std::int64_t>> bytes;  ///< those that hold some
};

/// Counts device memory, and what a framework takes from the driver to hand out in blocks as these blocks. While the
/// probe samples, a block counts as all that it stands for. Of a process whose records were lost nothing is told any
/// more: a free may be among them. Not thread-safe. Memory: some 10 MiB
/// a process, 40 bytes for each of its live blocks (trace::RecentGrowth), and the names of its code.
class RunLifetimes {
 public:
  /// `native`: may be null, as in trace::ProbeNames.
  explicit RunLifetimes(std::unique_ptr<trace::NativeNames> native);
  ~RunLifetimes();

  void take(const ProbedProcess& process, std::span<const probe::Slot> records);
  /// Of which something is to be told now. `now_s`: seconds since 1970.
  std::vector<trace::ToldProcess> tell(double now_s);
  /// What has begun to rise since the last call, each once. `now_s`: as in tell().
  std::vector<LateRise> late_rises(double now_s);
  /// Of each process that runs.
  [[nodiscard]] std::vector<ProcessCategories> categories() const;

 private:
  struct Process;
  /// A line of the program.
  struct Site {
    std::string words;
    std::size_t depth = 0;  ///< functions of the user's own that lie between the program's begin and it
  };
  /// A line and what it allocates: a line that calls a model allocates weights, activations and caches.
  struct Part {
    trace::SiteNumber site = 0;
    trace::Category category = trace::Category::unknown;
  };
  trace::SiteNumber part_of(Process& process, std::uint32_t stack);

  trace::Symbols symbols_;
  std::unique_ptr<trace::NativeNames> native_;
  trace::ProbeTrace texts_;  ///< of the records those that name: stacks, texts, modules
  trace::ProbeNames names_;
  std::map<std::size_t, std::unique_ptr<Process>> processes_;  ///< by index
  std::vector<Site> sites_;
  std::vector<Part> parts_;
  std::map<std::pair<trace::SiteNumber, trace::Category>, trace::SiteNumber> part_numbers_;
  trace::StackCategories stack_categories_{symbols_};
  std::unordered_map<std::string, trace::SiteNumber> numbers_;
};

}  // namespace vramtrack::run

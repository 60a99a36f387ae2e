// RunLifetimes: the records of a run's probes as lifetimes of what each line allocates, for the judge.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "probe/wire.hpp"
#include "run/collector.hpp"
#include "trace/lifetimes_account.hpp"
#include "trace/probe_names.hpp"
#include "trace/probe_trace.hpp"

namespace vramtrack::run {

/// Counts device memory, and what a framework takes from the driver to hand out in blocks as these blocks. While the
/// probe samples, a block counts as all that it stands for. Of a process whose records were lost nothing is told any
/// more: a free may be among them. Not thread-safe. Memory: some 10 MiB a process, and the names of its code.
class RunLifetimes {
 public:
  /// `native`: may be null, as in trace::ProbeNames.
  explicit RunLifetimes(std::unique_ptr<trace::NativeNames> native);
  ~RunLifetimes();

  void take(const ProbedProcess& process, std::span<const probe::Slot> records);
  /// Of which something is to be told now. `now_s`: seconds since 1970.
  std::vector<trace::ToldProcess> tell(double now_s);

 private:
  struct Process;
  trace::SiteNumber site_of(Process& process, std::uint32_t stack);

  trace::Symbols symbols_;
  std::unique_ptr<trace::NativeNames> native_;
  trace::ProbeTrace texts_;  ///< of the records those that name: stacks, texts, modules
  trace::ProbeNames names_;
  std::map<std::size_t, std::unique_ptr<Process>> processes_;  ///< by index
  std::vector<std::string> sites_;                             ///< their lines
  std::unordered_map<std::string, trace::SiteNumber> numbers_;
};

}  // namespace vramtrack::run

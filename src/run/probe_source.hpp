// The probes of a run as a source: each process's own account of its memory, and out-of-memory events.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "run/collector.hpp"
#include "run/process_facts.hpp"
#include "run/run_lifetimes.hpp"
#include "source/source.hpp"

namespace vramtrack::run {

/// It provides the event lifetimes, the series probe_live (the driver's allocations), and allocator_allocated and
/// allocator_reserved if a framework reports them. Devices are identified by their UUID; one without is named by API
/// and number, and does not match any device that a driver's source reports.
class ProbeSource final : public Source {
 public:
  /// All of these must outlive it. `facts` are per process, in the collector's order. `lifetimes` may be null.
  ProbeSource(const Collector& collector, const std::vector<ProcessFacts>& facts, RunLifetimes* lifetimes,
              Catalog& catalog)
      : collector_(collector), facts_(facts), lifetimes_(lifetimes), catalog_(catalog) {}

  Result<Progress> poll(Timestamp now, Batch& out) override;
  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  const std::string& describe(int number, const ProbedDevice& device);

  const Collector& collector_;
  const std::vector<ProcessFacts>& facts_;
  RunLifetimes* lifetimes_;
  Catalog& catalog_;
  std::map<std::pair<int, std::string>, std::string> ids_;  ///< by number and UUID
  SourceNotes notes_;
};

}  // namespace vramtrack::run

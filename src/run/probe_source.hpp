// The probes of a run as a source: what each process holds by its own account, and what ran out of memory.
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

/// Events lifetimes; series probe_live (the driver's allocations), and allocator_allocated and allocator_reserved where
/// a framework tells them. Devices are known by their UUID; one without is named by API and number, and is not one that
/// a driver's source tells of.
class ProbeSource final : public Source {
 public:
  /// All must outlive it. `facts` are by process, as the collector counts them. `lifetimes`: may be null.
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

#include "gate/run/process_tree.hpp"

#include "host/process_tree.hpp"

namespace vramtrack::gate {

ProcessTreeMemory::ProcessTreeMemory(const SourcesConfig& config)
    : config_(config), sources_(open_live_sources(config_, catalog_, reasons_)) {}

Result<double> ProcessTreeMemory::used_bytes(std::uint32_t root) {
  if (sources_.empty()) return fail("no GPU memory can be read here (" + reasons_ + "); see 'vramtrack doctor'");
  std::string warnings;
  batch_.clear();
  const Timestamp now = clock_.read().wall;
  for (LiveSource& live : sources_)
    poll_live(live, now, batch_, [&warnings](const std::string& text) { warnings = text; });
  if (batch_.samples.empty() && !warnings.empty()) return fail(warnings);
  const auto tree = process_tree(config_.proc_root, root);
  double total = 0;
  for (const Sample& sample : batch_.samples) {
    if (!catalog_.holds(sample.series)) continue;
    const SeriesKey& key = catalog_.key(sample.series);
    if (key.metric == Metric::process_used && tree.contains(key.pid)) total += static_cast<double>(sample.bytes);
  }
  return total;
}

}  // namespace vramtrack::gate

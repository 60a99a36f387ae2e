// Context: facts about the users of GPUs from other metrics of the server: the image of a pod, the cache of an
// inference server.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "fleet/findings.hpp"
#include "fleet/reader.hpp"

namespace vramtrack::fleet {

/// The images of pods, as exported by kube-state-metrics and similar exporters. Remembers the pods it has queried. Used
/// from one thread.
class Images {
 public:
  /// `mapping` must outlive it.
  explicit Images(const Mapping& mapping) : mapping_(mapping) {}

  /// Fills in missing images of workloads that have a pod. Pods that were queried before and were unknown are
  /// queried again only after forget_unknown(). If the server cannot answer, images stay empty: an image is only a
  /// hint.
  void complete(const Reader& reader, Scan& scan, std::int64_t start_ms, std::int64_t end_ms);
  void forget_unknown();

 private:
  /// Namespace and pod, then container.
  using Pod = std::pair<std::string, std::string>;
  void ask(const Reader& reader, const std::vector<Pod>& pods, std::int64_t start_ms, std::int64_t end_ms);

  const Mapping& mapping_;
  std::map<Pod, std::map<std::string, std::string>> images_;  ///< empty: unknown
};

/// Adds, for the jobs that leak or are suspected to, how full the caches of their inference servers were at the end.
/// Costs one request, or none if no job leaks.
void add_caches(const Reader& reader, const Mapping& mapping, std::int64_t end_ms, FleetFindings& found);

}  // namespace vramtrack::fleet

// Context: what other metrics of the server report about those who use GPUs: the image of a pod, the cache of an
// inference server.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "fleet/findings.hpp"
#include "fleet/reader.hpp"

namespace vramtrack::fleet {

/// The images of pods, by what kube-state-metrics and the like export. Remembers what it has asked for. Used from one
/// thread.
class Images {
 public:
  /// `mapping` must outlive it.
  explicit Images(const Mapping& mapping) : mapping_(mapping) {}

  /// Fills in the images of workloads that have a pod and no image. Pods that were asked for before, and were not
  /// known, are asked for again only after forget_unknown(). A server that cannot answer leaves them empty: an image is
  /// a hint.
  void complete(const Reader& reader, Scan& scan, std::int64_t start_ms, std::int64_t end_ms);
  void forget_unknown();

 private:
  /// Namespace and pod, then container.
  using Pod = std::pair<std::string, std::string>;
  void ask(const Reader& reader, const std::vector<Pod>& pods, std::int64_t start_ms, std::int64_t end_ms);

  const Mapping& mapping_;
  std::map<Pod, std::map<std::string, std::string>> images_;  ///< empty: not known
};

/// Adds to the jobs that leak, or are suspected to, how full the caches of their inference servers were at the end. One
/// request, and none where no job leaks.
void add_caches(const Reader& reader, const Mapping& mapping, std::int64_t end_ms, FleetFindings& found);

}  // namespace vramtrack::fleet

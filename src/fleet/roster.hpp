// Roster: which names belong to one machine, and which pods are exporters rather than work.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/series.hpp"

namespace vramtrack::fleet {

struct Identity;

/// A scrape may call a machine by its node, by the exporter's pod or by an address. Names under which the same GPU was
/// seen, at any time, belong to one machine. Remembers everything it is given. Used from one thread.
class Roster {
 public:
  /// Records that a GPU was seen on a host with this name.
  void add(const Identity& seen);
  /// Records that a machine has this name.
  void add_host(const std::string& host) { parents_.try_emplace(host, host); }
  /// Whether a GPU with that id was seen on a host that has a name.
  [[nodiscard]] bool has_gpu(const DeviceInfo& device) const {
    return host_of_gpu_.contains(device.parent_id.empty() ? device.id : device.parent_id);
  }
  [[nodiscard]] bool knows(const std::string& host) const { return parents_.contains(host); }
  /// The name that represents all names of the machine: the first alphabetically, so the same for every caller.
  [[nodiscard]] std::string machine_of(const std::string& host) const;

  /// Records that a pod or container is scraped, so that it is an exporter.
  void add_exporter_pod(const std::string& pod) { pods_.insert(pod); }
  void add_exporter_container(const std::string& container) { containers_.insert(container); }
  [[nodiscard]] bool is_exporter_pod(const std::string& pod) const { return pods_.contains(pod); }
  [[nodiscard]] bool is_exporter_container(const std::string& container) const {
    return containers_.contains(container);
  }

 private:
  std::map<std::string, std::string> parents_;  ///< leads to the first name, which is its own parent
  std::unordered_map<std::string, std::string> host_of_gpu_;
  std::unordered_set<std::string> pods_, containers_;
};

}  // namespace vramtrack::fleet

// Roster: which names are one machine, and which pods export instead of work.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/series.hpp"

namespace vramtrack::fleet {

struct Identity;

/// A machine's name is what a scrape happens to call it: its node, the exporter's pod, an address. Names under which
/// one GPU was seen, at one time or another, are one machine's. Remembers all it was given. Used from one thread.
class Roster {
 public:
  /// A GPU was seen on a host of this name.
  void add(const Identity& seen);
  /// There is such a machine.
  void add_host(const std::string& host) { parents_.try_emplace(host, host); }
  /// Whether a GPU of that id was seen on a host that has a name.
  [[nodiscard]] bool has_gpu(const DeviceInfo& device) const {
    return host_of_gpu_.contains(device.parent_id.empty() ? device.id : device.parent_id);
  }
  [[nodiscard]] bool knows(const std::string& host) const { return parents_.contains(host); }
  /// The name that stands for all of the machine's: the first of them by alphabet, the same for whoever asks.
  [[nodiscard]] std::string machine_of(const std::string& host) const;

  /// A pod, or a container, that is scraped: an exporter.
  void add_exporter_pod(const std::string& pod) { pods_.insert(pod); }
  void add_exporter_container(const std::string& container) { containers_.insert(container); }
  [[nodiscard]] bool is_exporter_pod(const std::string& pod) const { return pods_.contains(pod); }
  [[nodiscard]] bool is_exporter_container(const std::string& container) const {
    return containers_.contains(container);
  }

 private:
  std::map<std::string, std::string> parents_;  ///< towards the first name; that one is its own
  std::unordered_map<std::string, std::string> host_of_gpu_;
  std::unordered_set<std::string> pods_, containers_;
};

}  // namespace vramtrack::fleet

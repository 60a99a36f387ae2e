// Determines from an exporter's labels which GPU of which machine a series belongs to, and who uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/series.hpp"
#include "fleet/exporters.hpp"
#include "fleet/roster.hpp"

namespace vramtrack::fleet {

/// The user of a GPU, as far as labels name it; unknown fields are empty.
struct Workload {
  std::string job;       ///< the scheduler's id: "1234"
  std::string job_name;  ///< its name
  std::string user;
  std::string name_space;
  std::string pod;
  std::string container;
  std::string image;
  std::string framework;
  std::string driver;  ///< the driver's version
  friend bool operator==(const Workload&, const Workload&) = default;

  /// Identifies work that runs together: "slurm 1234", "training/resnet" (the namespace and the owner of the pod);
  /// empty if nothing is known.
  [[nodiscard]] std::string group() const;
  /// Identifies work that runs repeatedly: the job's name, or the pod's owner with its container; empty if unknown.
  [[nodiscard]] std::string program() const;
};

/// The GPU of a series.
struct Identity {
  DeviceInfo device;               ///< with its `host`, without its capacity
  bool has_uuid = false;           ///< true: its id is unique, whatever its host is called; false: only within its host
  bool is_host_of_scrape = false;  ///< `host` is an exporter's pod or an address, because the machine's name is unknown
  Workload workload;
  std::uint32_t pid = 0;  ///< for the series of a process
  std::string process_name;
};
/// nullopt: no label names a GPU. Only this function decides which labels identify a GPU, and which belong to the work:
///  * A UUID identifies a GPU, with or without "GPU-", in upper or lower case; together with a MIG instance, it
///    identifies that instance. Any other id, and the index, is unique only within its host.
///  * Either namespace, pod, container and image all belong to the work, or none does. If Prometheus has renamed one of
///    them to "exported_...", the others are the scrape's (honor_labels: false). A pod that `roster` lists as an
///    exporter's, or that has the name of the scrape's job, is never the work's.
std::optional<Identity> identify(const Labels& labels, const Exporter& exporter, const WorkloadLabels& names,
                                 const Roster& roster);

/// The host in a label: "node1" for "node1:9400". A '/' becomes '_', so a host never contains one.
std::string host_of(std::string_view label);

}  // namespace vramtrack::fleet

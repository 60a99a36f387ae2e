// Which GPU, of which machine, a series belongs to, and who uses it: by the labels of its exporter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/series.hpp"
#include "fleet/exporters.hpp"
#include "fleet/roster.hpp"

namespace vramtrack::fleet {

/// Who uses a GPU, as far as labels say; unknown is empty.
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

  /// What runs together: "slurm 1234", "training/resnet" (the namespace and the owner of the pod); empty when nothing
  /// is known.
  [[nodiscard]] std::string group() const;
  /// What runs again and again: the job's name, or the owner of the pod with its container; empty when not known.
  [[nodiscard]] std::string program() const;
};

/// The series' GPU.
struct Identity {
  DeviceInfo device;      ///< with `host`; without the capacity
  bool has_uuid = false;  ///< its id is unique, whatever its host is called; otherwise it is unique within its host
  bool is_host_of_scrape = false;  ///< `host` is an exporter's pod, or an address: for lack of the machine's name
  Workload workload;
  std::uint32_t pid = 0;  ///< of a process's series
  std::string process_name;
};
/// nullopt: no label names a GPU. Only this function decides which labels identify a GPU, and which belong to the work:
///  * A UUID is a GPU, with or without "GPU-", in letters of either case; with a MIG instance it is that instance. Any
///    other id, and the index, is unique only within its host.
///  * Either namespace, pod, container and image all belong to the work, or none does. If Prometheus has renamed one of
///    them to "exported_...", the others are the scrape's (honor_labels: false). A pod that `roster` lists as an
///    exporter's, or that has the name of the scrape's job, is never the work's.
std::optional<Identity> identify(const Labels& labels, const Exporter& exporter, const WorkloadLabels& names,
                                 const Roster& roster);

/// "node1:9400" as "node1"; a '/' becomes '_': hosts never hold one.
std::string host_of(std::string_view label);

}  // namespace vramtrack::fleet

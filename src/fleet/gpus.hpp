// Gpus: the series of one page of a fleet, grouped by machine and GPU.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fleet/identity.hpp"
#include "fleet/packed.hpp"
#include "fleet/remote_read.hpp"

namespace vramtrack::fleet {

/// One series of the server: that of a GPU while it had one user.
struct Track {
  PackedSeries samples;
  Workload workload;
  std::string scrape;         ///< identifies one of several readers of the GPU: server replica, exporter
  std::size_t rank = 0;       ///< the rank of the exporter
  std::size_t name_rank = 0;  ///< the rank of the metric among those of its exporter
  bool is_by_agent = false;
  bool is_free = false;  ///< free memory; take() converts it to used memory
};

/// One process on one GPU.
struct ProcessTrack {
  PackedSeries samples;
  std::uint32_t pid = 0;
  std::string name;
  std::string user;
};

/// A name under which a machine was reported.
struct HostName {
  std::string name;
  bool is_of_scrape = false;  ///< see Identity
  std::int64_t last_ms = INT64_MIN;
};

struct Gpu {
  DeviceInfo device;  ///< its host varies over time: the machine's own name if known, otherwise the latest
  bool has_uuid = false;
  std::vector<HostName> hosts;
  std::vector<Track> tracks;
  std::vector<ProcessTrack> processes;
  std::vector<PackedSeries> busy;      ///< values of Metric::device_busy, one series per user
  std::vector<PackedSeries> received;  ///< values of Metric::device_received, likewise
  std::optional<std::uint64_t> capacity_bytes;
};

/// Identifies a GPU: by its UUID, without the host; if it has no UUID, by its host and its id there.
struct GpuKey {
  std::string host, id;
  friend auto operator<=>(const GpuKey&, const GpuKey&) = default;
};

/// One machine, under all its names.
struct Machine {
  std::string host;  ///< see Roster::machine_of()
  std::map<GpuKey, Gpu> gpus;
};

/// Collects series as they arrive. Not thread-safe.
class Gpus {
 public:
  /// Both must outlive this. Adds to the roster which names belong to one machine.
  Gpus(const Mapping& mapping, Roster& roster) : mapping_(&mapping), roster_(&roster) {}

  /// Adds samples of used memory (or of free memory if there is none), of how busy a GPU is, and of the data it
  /// receives. Blank values (NaN, negative, DCGM's "no value") give no sample.
  void add(const Labels& labels, const std::vector<Point>& points);
  /// Reads only the GPUs' capacity, from a short time. Adds no samples.
  void add_capacity(const Labels& labels, const std::vector<Point>& points);
  /// When to read the missing capacities: the time of the last sample before `before_ms`, under any host, of the GPUs
  /// whose capacity is unknown. nullopt: there is none.
  [[nodiscard]] std::optional<std::int64_t> capacity_missing_at(std::int64_t before_ms = INT64_MAX) const;

  /// Returns all machines; this object is empty afterwards. O(machines).
  std::map<std::string, Machine> take();

  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  [[nodiscard]] std::uint64_t blank_values() const { return blank_values_; }
  [[nodiscard]] std::uint64_t unnamed_series() const { return unnamed_series_; }  ///< without a label that names a GPU

 private:
  /// Parts of a GPU's memory, as one exporter reports them.
  struct Parts {
    std::map<std::int64_t, std::uint64_t> used, free, reserved;
    std::uint64_t total = 0;
  };
  struct Place {
    Gpu* gpu = nullptr;
    std::size_t track = 0;
    std::size_t host = 0;     ///< among the GPU's names
    bool is_percent = false;  ///< values of a metric labelled as a ratio exceed 1
  };
  Gpu& gpu_of(const Identity& identity);

  const Mapping* mapping_;
  Roster* roster_;
  std::map<GpuKey, Gpu> gpus_;
  std::unordered_map<std::string, Place> place_of_labels_;  ///< by the labels of a series, which may arrive in pieces
  std::map<GpuKey, std::map<std::size_t, Parts>> parts_;
  std::uint64_t samples_ = 0;
  std::uint64_t blank_values_ = 0;
  std::uint64_t unnamed_series_ = 0;
};

/// The memory in use of one GPU, in time order. Only the preferred exporter's series are used and, if it has several
/// scrapes, one at a time: another scrape where the first one has no sample for some minutes. Where series of a scrape
/// overlap, equal values at one time are copies (dcgm-exporter repeats a GPU for each pod that shares it) and count
/// once; different values are shares of different users and are added up, unless one of them has no user: that one is
/// the whole GPU. If an exporter has the memory under two names at one time, for example in another unit, the preferred
/// name counts.
struct UsedMemory {
  std::vector<Reading> readings;
  bool is_shared = false;    ///< shares were added up
  bool is_by_agent = false;  ///< vramtrack's own agent exports it
};
UsedMemory used_memory(const Gpu& gpu);

/// A fact about one GPU, Gpu::busy or Gpu::received, in time order, one value per time.
std::vector<Reading> fact_readings(const std::vector<PackedSeries>& fact);

/// A user of a GPU, from its first to its last sample.
struct Tenancy {
  Workload workload;
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
};
/// In the order of their first samples; overlapping or consecutive ones of one user are merged.
std::vector<Tenancy> tenancies(const Gpu& gpu);
/// Adds one that began no earlier than any in `to`, likewise.
void add_tenancy(std::vector<Tenancy>& to, Tenancy tenancy);

}  // namespace vramtrack::fleet

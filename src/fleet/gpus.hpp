// Gpus: the series of one page of a fleet, put together by machine and GPU.
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

/// One series of the server: a GPU's, while one user had it.
struct Track {
  PackedSeries samples;
  Workload workload;
  std::string scrape;         ///< which of several that read the GPU: another replica of the server, another exporter
  std::size_t rank = 0;       ///< the rank of the exporter
  std::size_t name_rank = 0;  ///< the rank of the metric among its exporter's
  bool is_by_agent = false;
  bool is_free = false;  ///< what is free; take() makes it what is used
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
  bool is_of_scrape = false;  ///< as in Identity
  std::int64_t last_ms = INT64_MIN;
};

struct Gpu {
  DeviceInfo device;  ///< its host is an attribute: the machine's name as far as it is known, else the latest
  bool has_uuid = false;
  std::vector<HostName> hosts;
  std::vector<Track> tracks;
  std::vector<ProcessTrack> processes;
  std::vector<PackedSeries> busy;      ///< values of Metric::device_busy, a series for each user
  std::vector<PackedSeries> received;  ///< the same of Metric::device_received
  std::optional<std::uint64_t> capacity_bytes;
};

/// What makes a GPU the same one: its UUID, and no host; without a UUID, its host and its id there.
struct GpuKey {
  std::string host, id;
  friend auto operator<=>(const GpuKey&, const GpuKey&) = default;
};

/// One machine, whatever names it had.
struct Machine {
  std::string host;  ///< as in Roster::machine_of()
  std::map<GpuKey, Gpu> gpus;
};

/// Takes series as they come. Not thread-safe.
class Gpus {
 public:
  /// Both must outlive this. The roster learns which names are one machine's.
  Gpus(const Mapping& mapping, Roster& roster) : mapping_(&mapping), roster_(&roster) {}

  /// Samples of used memory, or of free memory where there is no other, of how busy a GPU is, and of what it receives.
  /// What is blank (NaN, negative, DCGM's values that mean "no value") makes no sample.
  void add(const Labels& labels, const std::vector<Point>& points);
  /// From a short time: only what shows the GPUs' capacity. It makes no samples.
  void add_capacity(const Labels& labels, const std::vector<Point>& points);
  /// Of those GPUs whose capacity is not known yet, the last sample under any of their hosts, before `before_ms`: where
  /// to read it. nullopt: there is none.
  [[nodiscard]] std::optional<std::int64_t> capacity_missing_at(std::int64_t before_ms = INT64_MAX) const;

  /// All machines; this is empty afterwards. O(machines).
  std::map<std::string, Machine> take();

  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  [[nodiscard]] std::uint64_t blank_values() const { return blank_values_; }
  [[nodiscard]] std::uint64_t unnamed_series() const { return unnamed_series_; }  ///< no label named a GPU

 private:
  /// Parts of a GPU's memory, as one exporter gives them.
  struct Parts {
    std::map<std::int64_t, std::uint64_t> used, free, reserved;
    std::uint64_t total = 0;
  };
  struct Place {
    Gpu* gpu = nullptr;
    std::size_t track = 0;
    std::size_t host = 0;     ///< of the GPU's names
    bool is_percent = false;  ///< values of a metric that is called a ratio exceed 1
  };
  Gpu& gpu_of(const Identity& identity);

  const Mapping* mapping_;
  Roster* roster_;
  std::map<GpuKey, Gpu> gpus_;
  std::unordered_map<std::string, Place> places_;  ///< for a series, by its labels: it may come in pieces
  std::map<GpuKey, std::map<std::size_t, Parts>> parts_;
  std::uint64_t samples_ = 0;
  std::uint64_t blank_values_ = 0;
  std::uint64_t unnamed_series_ = 0;
};

/// The memory in use of one GPU, in order of time. One exporter's series are used, the preferred one's; of several
/// scrapes of it, one at a time: another one where that has none for some minutes. Where series of a scrape overlap,
/// equal values at one time are copies (dcgm-exporter repeats a GPU for each pod that shares it) and count once; values
/// that differ are shares of different users and are added up, unless one of them is of no user: that is the whole GPU.
/// Where an exporter has the memory under two names at one
/// time, in another unit for example, the preferred name counts.
struct UsedMemory {
  std::vector<Reading> readings;
  bool is_shared = false;    ///< shares were added up
  bool is_by_agent = false;  ///< vramtrack's own agent exports it
};
UsedMemory used_memory(const Gpu& gpu);

/// A fact about one GPU, Gpu::busy or Gpu::received, in order of time, one value per time.
std::vector<Reading> fact_readings(const std::vector<PackedSeries>& fact);

/// A user of a GPU, from its first to its last sample.
struct Tenancy {
  Workload workload;
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
};
/// In order of their first samples; those of one user that overlap, or follow one another, are one.
std::vector<Tenancy> tenancies(const Gpu& gpu);
/// Adds one that began no earlier than any of `to`, likewise.
void add_tenancy(std::vector<Tenancy>& to, Tenancy tenancy);

}  // namespace vramtrack::fleet

#include "fleet/gpus.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/order.hpp"

namespace vramtrack::fleet {
namespace {

/// No device has 1 PiB: DCGM's blank values are near 2^31 and 2^63, in MiB.
constexpr double kMostBytes = 1024.0 * 1024 * 1024 * 1024 * 1024;

/// Its name in exporters.toml.
constexpr std::string_view kAgent = "vramtrack agent";

std::optional<std::uint64_t> bytes_of(double value, double unit_bytes) {
  const double bytes = value * unit_bytes;
  if (!(bytes >= 0 && bytes < kMostBytes)) return std::nullopt;  // NaN, too
  return static_cast<std::uint64_t>(std::llround(bytes));
}

std::string key_of(const Labels& labels) {
  std::string key;
  for (const auto& [name, value] : labels) {
    key += name;
    key += '\0';
    key += value;
    key += '\0';
  }
  return key;
}

/// Identifies the scrape of a series: its target, and the replica of the server that read it.
std::string scrape_of(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels)
    if (name == "job" || name == "instance" || name.find("replica") != std::string::npos) out += value + '\0';
  return out;
}

GpuKey key_of(const Identity& identity) {
  return {identity.has_uuid ? std::string() : identity.device.host, identity.device.id};
}

/// A scrape without a sample for this long has ended: two or three intervals of a minute.
constexpr std::int64_t kGoneMs = 150'000;

/// Prefers the machine's own name to a substitute, then the latest. Names reported at the same time are equally
/// late.
const HostName& best_name(const std::vector<HostName>& names) {
  std::int64_t latest_ms = INT64_MIN;
  const bool has_own = std::any_of(names.begin(), names.end(), [](const HostName& n) { return !n.is_of_scrape; });
  for (const HostName& n : names)
    if (n.is_of_scrape != has_own) latest_ms = std::max(latest_ms, n.last_ms);
  const HostName* best = nullptr;
  for (const HostName& n : names)
    if (n.is_of_scrape != has_own && (n.last_ms == latest_ms || n.last_ms >= latest_ms - kGoneMs) &&
        (best == nullptr || n.name < best->name))
      best = &n;
  return *best;
}

struct Tracked {
  Reading reading;
  std::size_t track = 0;
  std::size_t name_rank = 0;
};

bool earlier(const Tracked& a, const Tracked& b) {
  return std::tie(a.reading.time_ms, a.name_rank, a.track) < std::tie(b.reading.time_ms, b.name_rank, b.track);
}

/// For each time, keeps the readings under the preferred name. `all` is in the order of earlier().
void keep_preferred_names(std::vector<Tracked>& all) {
  std::size_t kept = 0;
  for (const Tracked& one : all)
    if (kept == 0 || all[kept - 1].reading.time_ms != one.reading.time_ms || all[kept - 1].name_rank == one.name_rank)
      all[kept++] = one;
  all.resize(kept);
}

/// Calls group(first, last) for the readings of each time.
template <class Group>
void each_time(const std::vector<Tracked>& all, Group group) {
  for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
    for (end = i + 1; end < all.size() && all[end].reading.time_ms == all[i].reading.time_ms;) ++end;
    group(i, end);
  }
}

/// The rank of the preferred exporter among a GPU's series.
std::size_t best_rank(const Gpu& gpu) {
  std::size_t best = SIZE_MAX;
  for (const Track& track : gpu.tracks)
    if (track.samples.size() > 0) best = std::min(best, track.rank);
  return best;
}

/// nullptr if the metric is not a fact.
std::vector<PackedSeries>* fact_of(Gpu& gpu, Role role) {
  if (role == Role::busy) return &gpu.busy;
  return role == Role::received ? &gpu.received : nullptr;
}

}  // namespace

Gpu& Gpus::gpu_of(const Identity& identity) {
  Gpu& gpu = gpus_[key_of(identity)];
  DeviceInfo& known = gpu.device;
  known.id = identity.device.id;
  gpu.has_uuid = identity.has_uuid;
  if (!known.index) known.index = identity.device.index;
  if (known.name.empty()) known.name = identity.device.name;
  if (known.parent_id.empty()) known.parent_id = identity.device.parent_id;
  roster_->add(identity);
  return gpu;
}

void Gpus::add(const Labels& labels, const std::vector<Point>& points) {
  const auto meaning = mapping_->find(std::string(value_of(labels, "__name__")));
  if (!meaning || meaning->role == Role::reserved || meaning->role == Role::total) return;
  const bool is_process = meaning->role == Role::process;
  auto [place, is_new] = place_of_labels_.try_emplace(key_of(labels));
  if (is_new) {
    const auto identity = identify(labels, *meaning->exporter, mapping_->workload(), *roster_);
    if (!identity || (is_process && identity->pid == 0)) {
      ++unnamed_series_;
      place_of_labels_.erase(place);
      return;
    }
    Gpu& gpu = gpu_of(*identity);
    const auto host = std::find_if(gpu.hosts.begin(), gpu.hosts.end(),
                                   [&](const HostName& known) { return known.name == identity->device.host; });
    std::vector<PackedSeries>* const fact = fact_of(gpu, meaning->role);
    place->second = {&gpu,
                     fact != nullptr ? fact->size()
                     : is_process    ? gpu.processes.size()
                                     : gpu.tracks.size(),
                     static_cast<std::size_t>(host - gpu.hosts.begin())};
    if (host == gpu.hosts.end()) gpu.hosts.push_back({identity->device.host, identity->is_host_of_scrape});
    if (fact != nullptr)
      fact->emplace_back();
    else if (is_process)
      gpu.processes.push_back({{}, identity->pid, identity->process_name, identity->workload.user});
    else
      gpu.tracks.push_back({{},
                            identity->workload,
                            scrape_of(labels),
                            meaning->rank,
                            meaning->name_rank,
                            meaning->exporter->name == kAgent,
                            meaning->role == Role::free});
  }
  Gpu& gpu = *place->second.gpu;
  if (meaning->role == Role::received) {
    for (const Point& point : points)
      if (const auto bytes_per_s = bytes_of(point.value, meaning->unit_bytes))
        gpu.received[place->second.track].append(point.time_ms, *bytes_per_s);
    return;
  }
  if (meaning->role == Role::busy) {
    // DCGM 4.5 and 4.6 label a percentage as a ratio.
    bool& is_percent = place->second.is_percent;
    is_percent |= meaning->unit_bytes == 1 && std::any_of(points.begin(), points.end(),
                                                          [](const Point& p) { return p.value > 1 && p.value <= 100; });
    const double unit = is_percent ? 0.01 : meaning->unit_bytes;
    for (const Point& point : points)
      if (const double ratio = point.value * unit; ratio >= 0 && ratio <= 1)
        gpu.busy[place->second.track].append(point.time_ms,
                                             static_cast<std::uint64_t>(std::llround(ratio * kBusyWhole)));
    return;
  }
  PackedSeries& samples =
      is_process ? gpu.processes[place->second.track].samples : gpu.tracks[place->second.track].samples;
  for (const Point& point : points) {
    const auto bytes = bytes_of(point.value, meaning->unit_bytes);
    if (!bytes) {
      ++blank_values_;
      continue;
    }
    samples.append(point.time_ms, *bytes);
    std::int64_t& named_ms = gpu.hosts[place->second.host].last_ms;
    named_ms = std::max(named_ms, point.time_ms);
    ++samples_;
  }
}

void Gpus::add_capacity(const Labels& labels, const std::vector<Point>& points) {
  const auto meaning = mapping_->find(std::string(value_of(labels, "__name__")));
  if (!meaning || meaning->role >= Role::process) return;
  const auto identity = identify(labels, *meaning->exporter, mapping_->workload(), *roster_);
  if (!identity) return;
  Parts& parts = parts_[key_of(*identity)][meaning->rank];
  for (const Point& point : points) {
    const auto bytes = bytes_of(point.value, meaning->unit_bytes);
    if (!bytes) continue;
    switch (meaning->role) {
      case Role::used:
        parts.used[point.time_ms] = *bytes;
        break;
      case Role::free:
        parts.free[point.time_ms] = *bytes;
        break;
      case Role::reserved:
        parts.reserved[point.time_ms] = *bytes;
        break;
      case Role::total:
        parts.total = std::max(parts.total, *bytes);
        break;
      case Role::process:
      case Role::busy:
      case Role::received:
        break;
    }
  }
}

std::optional<std::int64_t> Gpus::capacity_missing_at(std::int64_t before_ms) const {
  std::optional<std::int64_t> latest;
  for (const auto& [key, gpu] : gpus_) {
    const auto known = parts_.find(key);
    const bool has_total =
        known != parts_.end() && std::any_of(known->second.begin(), known->second.end(), [](const auto& exporter) {
          return exporter.second.total > 0 || !exporter.second.free.empty();
        });
    if (has_total) continue;
    for (const HostName& host : gpu.hosts)
      if (host.last_ms != INT64_MIN && host.last_ms < before_ms)
        latest = std::max(latest.value_or(INT64_MIN), host.last_ms);
  }
  return latest;
}

namespace {

/// Converts free memory to used memory: the capacity less the free memory and the driver's reserve. If the GPU has used
/// memory, or no capacity is known, free memory is dropped.
void make_used(Gpu& gpu, std::uint64_t reserved) {
  const bool has_used = std::any_of(gpu.tracks.begin(), gpu.tracks.end(), [](const Track& t) { return !t.is_free; });
  if (has_used || !gpu.capacity_bytes) {
    std::erase_if(gpu.tracks, [](const Track& track) { return track.is_free; });
    return;
  }
  const std::uint64_t capacity = *gpu.capacity_bytes - std::min(reserved, *gpu.capacity_bytes);
  std::vector<Reading> readings;
  for (Track& track : gpu.tracks) {
    readings.clear();
    track.samples.unpack(readings);
    track.samples = {};
    for (const Reading& reading : readings)
      track.samples.append(reading.time_ms, capacity - std::min(reading.bytes, capacity));
    track.is_free = false;
  }
}

}  // namespace

std::map<std::string, Machine> Gpus::take() {
  for (auto& [key, exporters] : parts_) {
    const auto gpu = gpus_.find(key);
    if (gpu == gpus_.end()) continue;
    std::uint64_t reserved = 0;
    for (const auto& [rank, parts] : exporters) {
      std::uint64_t total = parts.total;
      // Used plus free memory of one scrape. The sums differ by some MiB because of rounding; the largest is closest.
      for (const auto& [time_ms, free] : parts.free) {
        const auto used = parts.used.find(time_ms);
        if (parts.total > 0 || used == parts.used.end()) continue;
        const auto reserved_then = parts.reserved.find(time_ms);
        total =
            std::max(total, used->second + free + (reserved_then == parts.reserved.end() ? 0 : reserved_then->second));
      }
      if (total > 0 && !gpu->second.capacity_bytes) gpu->second.capacity_bytes = total;
      if (!parts.reserved.empty()) reserved = std::max(reserved, parts.reserved.rbegin()->second);
    }
    make_used(gpu->second, reserved);
  }
  std::map<std::string, Machine> machines;
  for (auto& [key, gpu] : gpus_) {
    if (!parts_.contains(key)) make_used(gpu, 0);
    gpu.device.host = best_name(gpu.hosts).name;
    // Series without a host are read separately: this GPU has others, which are used to judge it.
    if (gpu.device.host.empty() && roster_->has_gpu(gpu.device)) continue;
    Machine& machine = machines[roster_->machine_of(gpu.device.host)];
    machine.host = roster_->machine_of(gpu.device.host);
    machine.gpus.emplace(key, std::move(gpu));
  }
  parts_.clear();
  place_of_labels_.clear();
  gpus_.clear();
  return machines;
}

namespace {

/// Uses one scrape at a time: of those with at least half as many readings as any other, the first by name. Readings of
/// other scrapes count where it has none nearby. `all` is in time order.
void keep_one_scrape(const Gpu& gpu, std::vector<Tracked>& all) {
  std::map<std::string, std::vector<std::int64_t>> scrapes;  // the times of each scrape
  std::vector<std::vector<std::int64_t>*> of_track;
  for (const Track& track : gpu.tracks) of_track.push_back(&scrapes[track.scrape]);
  if (scrapes.size() < 2) return;
  std::size_t most = 0;
  for (const Tracked& one : all) {
    of_track[one.track]->push_back(one.reading.time_ms);
    most = std::max(most, of_track[one.track]->size());
  }
  std::vector<const std::vector<std::int64_t>*> preferred;
  for (const auto& [name, times] : scrapes) preferred.push_back(&times);
  std::stable_partition(preferred.begin(), preferred.end(),
                        [most](const auto* times) { return times->size() * 2 >= most; });
  std::erase_if(all, [&](const Tracked& one) {
    const std::int64_t now_ms = one.reading.time_ms;
    const auto own = std::find(preferred.begin(), preferred.end(), of_track[one.track]);
    return std::any_of(preferred.begin(), own, [now_ms](const auto* better) {
      const auto near = std::lower_bound(better->begin(), better->end(), now_ms - kGoneMs);
      return near != better->end() && *near <= now_ms + kGoneMs;
    });
  });
}

/// If one series at a time names no user and others do, it is the use of the whole GPU, in addition to each user's
/// share. `all` is in time order.
void keep_whole(const Gpu& gpu, std::vector<Tracked>& all) {
  const auto is_whole = [&](const Tracked& one) {
    const Workload& work = gpu.tracks[one.track].workload;
    return work.group().empty() && work.user.empty();
  };
  std::vector<Tracked> kept;
  each_time(all, [&](std::size_t begin, std::size_t end) {
    bool has_whole = false;
    for (std::size_t i = begin; i < end; ++i) has_whole |= is_whole(all[i]);
    for (std::size_t i = begin; i < end; ++i)
      if (!has_whole || is_whole(all[i])) kept.push_back(all[i]);
  });
  all = std::move(kept);
}

}  // namespace

UsedMemory used_memory(const Gpu& gpu) {
  UsedMemory out;
  const std::size_t best = best_rank(gpu);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < gpu.tracks.size(); ++i)
    if (gpu.tracks[i].rank == best && gpu.tracks[i].samples.size() > 0) chosen.push_back(i);
  out.is_by_agent = !chosen.empty() && gpu.tracks[chosen.front()].is_by_agent;
  if (chosen.size() == 1 && gpu.tracks[chosen.front()].samples.is_sorted()) {
    out.readings.reserve(gpu.tracks[chosen.front()].samples.size());
    gpu.tracks[chosen.front()].samples.unpack(out.readings);
    return out;
  }
  std::vector<Tracked> all;
  std::vector<Reading> readings;
  for (const std::size_t i : chosen) {
    readings.clear();
    gpu.tracks[i].samples.unpack(readings);
    for (const Reading& reading : readings) all.push_back({reading, i, gpu.tracks[i].name_rank});
  }
  std::stable_sort(all.begin(), all.end(), earlier);
  keep_one_scrape(gpu, all);
  keep_preferred_names(all);
  keep_whole(gpu, all);
  each_time(all, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin + 1; i < end && !out.is_shared; ++i)
      out.is_shared = all[i].track != all[begin].track && all[i].reading.bytes != all[begin].reading.bytes &&
                      gpu.tracks[all[i].track].workload != gpu.tracks[all[begin].track].workload;
  });
  each_time(all, [&](std::size_t begin, std::size_t end) {
    Reading sum = all[begin].reading;
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (!out.is_shared)
        sum.bytes = std::max(sum.bytes, all[i].reading.bytes);
      else if (all[i].track != all[i - 1].track)  // a series twice at one time is a repetition
        sum.bytes += all[i].reading.bytes;
    }
    out.readings.push_back(sum);
  });
  return out;
}

std::vector<Reading> fact_readings(const std::vector<PackedSeries>& fact) {
  std::vector<Reading> out;
  for (const PackedSeries& series : fact) series.unpack(out);
  std::stable_sort(out.begin(), out.end(), [](const Reading& a, const Reading& b) { return a.time_ms < b.time_ms; });
  // A GPU shared by several pods is reported once for each.
  const auto same_time = [](const Reading& a, const Reading& b) { return a.time_ms == b.time_ms; };
  out.erase(std::unique(out.begin(), out.end(), same_time), out.end());
  return out;
}

std::vector<Tenancy> tenancies(const Gpu& gpu) {
  std::vector<Tenancy> out;
  const std::size_t best = best_rank(gpu);
  for (const Track& track : gpu.tracks)
    if (track.rank == best && track.samples.size() > 0)
      out.push_back({track.workload, track.samples.first_ms(), track.samples.last_ms()});
  order(out, [](const Tenancy& a, const Tenancy& b) { return a.first_ms < b.first_ms; });
  std::vector<Tenancy> joined;
  for (Tenancy& tenancy : out) add_tenancy(joined, std::move(tenancy));
  return joined;
}

void add_tenancy(std::vector<Tenancy>& to, Tenancy tenancy) {
  for (std::size_t i = to.size(); i-- > 0;)
    if (to[i].workload == tenancy.workload && (i + 1 == to.size() || tenancy.first_ms <= to[i].last_ms)) {
      to[i].last_ms = std::max(to[i].last_ms, tenancy.last_ms);
      return;
    }
  to.push_back(std::move(tenancy));
}

}  // namespace vramtrack::fleet

#include "engine/stray_contexts.hpp"

#include <fmt/format.h>

#include <map>

#include "core/units.hpp"

namespace vramtrack {
namespace {

/// A CUDA context with the kernels of libraries takes 0.1 to 1.2 GiB.
constexpr double kMostBytes = 1.3 * kGiB;
constexpr double kStaysWithin_bytes = 2 * kMiB;
constexpr double kLeastAge_s = 60;
constexpr std::uint64_t kLeastSamples = 10;
constexpr std::uint64_t kTimesLarger = 4;

bool is_small_and_constant(const SeriesState& s) {
  return s.key.metric == Metric::process_used && !s.ended && !s.paused && s.samples >= kLeastSamples &&
         seconds_between(s.peak_time, s.last_time) >= kLeastAge_s && s.last_bytes > 0 &&
         static_cast<double>(s.last_bytes) <= kMostBytes &&
         static_cast<double>(s.peak_bytes - s.last_bytes) <= kStaysWithin_bytes && !s.has_run;
}

bool works_elsewhere(const SeriesState& stray, const SeriesTable& table) {
  bool found = false;
  table.for_process(process_key(stray.key), [&](const SeriesState& other) {
    found = found || (other.key.metric == Metric::process_used && other.id != stray.id && !other.ended &&
                      other.has_run && other.last_bytes >= kTimesLarger * stray.last_bytes);
  });
  return found;
}

struct Strays {
  std::size_t processes = 0;
  std::uint64_t bytes = 0;
};

}  // namespace

std::vector<std::string> stray_contexts(const SeriesTable& table, const Catalog& catalog) {
  std::map<std::string, Strays> by_device;
  table.for_each([&](const SeriesState& s) {
    if (!is_small_and_constant(s) || !s.key.host.empty() || !works_elsewhere(s, table)) return;
    Strays& strays = by_device[s.key.device_id];
    ++strays.processes;
    strays.bytes += s.last_bytes;
  });
  std::vector<std::string> out;
  for (const DeviceInfo& device : catalog.devices()) {
    const auto at = by_device.find(device.id);
    if (at == by_device.end() || !device.host.empty()) continue;
    const Strays& strays = at->second;
    const std::string gpu = device.index ? fmt::format("GPU {}", *device.index) : device.id;
    const bool is_one = strays.processes == 1;
    out.push_back(fmt::format(
        "{} {} {} on {} and {} nothing there, while {} on another GPU: set the device before the first CUDA call "
        "(torch.cuda.set_device(), or CUDA_VISIBLE_DEVICES for each process)",
        is_one ? "1 process" : fmt::format("{} processes", strays.processes), is_one ? "holds" : "hold",
        catalog.scale.bytes(static_cast<double>(strays.bytes)), gpu, is_one ? "runs" : "run",
        is_one ? "it works" : "they work"));
  }
  return out;
}

}  // namespace vramtrack

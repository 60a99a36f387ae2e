// Any bytes as a scenario: an error with a message, or a scenario whose first ticks play within its capacities.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "source/sim/sim.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Result<sim::Scenario> scenario = sim::parse_scenario(text, "fuzz.toml");
  if (!scenario) {
    if (scenario.error().message.empty()) std::abort();
    return 0;
  }
  // Long scenarios are legal; playing them whole would only make the fuzzer slow.
  Catalog catalog;
  const auto source = sim::make_simulation(*scenario, catalog);
  Batch batch;
  for (int tick = 0; tick < 20; ++tick) {
    batch.clear();
    const Result<Progress> progress = source->poll({}, batch);
    if (!progress) std::abort();
    for (const Sample& sample : batch.samples) {
      const SeriesKey& key = catalog.key(sample.series);
      for (const sim::DeviceSpec& device : scenario->devices)
        if (device.info.id == key.device_id && key.metric != Metric::device_reserved &&
            sample.bytes > device.capacity_bytes)
          std::abort();
    }
    if (*progress == Progress::end) break;
  }
  return 0;
}

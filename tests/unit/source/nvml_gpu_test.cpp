// The nvml source on this machine's own GPUs; skipped if there are none.
#include <gtest/gtest.h>

#include "core/series.hpp"
#include "source/source.hpp"

namespace vramtrack {

extern const SourceInfo nvml_source;

namespace {

TEST(NvmlGpu, TwoPollsOfTheRealDriverAreConsistent) {
  Catalog catalog;
  const auto source = nvml_source.make(SourcesConfig{}, catalog);
  if (!source) GTEST_SKIP() << "no NVIDIA GPU here: " << source.error().message;
  ASSERT_FALSE(catalog.devices().empty());
  for (const DeviceInfo& device : catalog.devices()) {
    EXPECT_TRUE(device.id.rfind("GPU-", 0) == 0 || device.id.rfind("MIG-", 0) == 0) << device.id;
    EXPECT_FALSE(device.name.empty());
    EXPECT_EQ(device.pci_bus_id.size(), 16U) << device.pci_bus_id;
  }
  for (int second = 1; second <= 2; ++second) {
    const Timestamp now = Timestamp() + from_seconds(second);
    Batch batch;
    ASSERT_TRUE((*source)->poll(now, batch));
    EXPECT_FALSE(batch.samples.empty());
    for (const Sample& sample : batch.samples) {
      const SeriesKey& key = catalog.key(sample.series);
      const DeviceInfo* device = catalog.device(key.device_id);
      ASSERT_NE(device, nullptr);
      EXPECT_EQ(sample.time, now);
      // A process can map more than the device has only with unified memory, which used bytes do not include.
      EXPECT_LE(sample.bytes, device->capacity_bytes.value_or(sample.bytes)) << to_string(key.metric);
      if (key.metric == Metric::process_used) {
        EXPECT_NE(key.pid, 0U);
        EXPECT_LE(key.pid, 4194304U) << "a misread entry";
      }
    }
    for (const Event& event : batch.events) EXPECT_NE(event.kind, Event::Kind::device_lost) << event.text;
  }
}

}  // namespace
}  // namespace vramtrack

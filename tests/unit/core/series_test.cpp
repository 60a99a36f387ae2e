#include "core/series.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(Catalog, AReusedPidIsAnotherSeries) {
  Catalog catalog;
  const SeriesId first = catalog.intern({Metric::process_used, "GPU-a", 42, 1000});
  const SeriesId second = catalog.intern({Metric::process_used, "GPU-a", 42, 2000});
  EXPECT_NE(first, second);
  EXPECT_EQ(first, catalog.intern({Metric::process_used, "GPU-a", 42, 1000}));
  EXPECT_EQ(catalog.key(second).pid_start_ticks, 2000U);
  EXPECT_FALSE(catalog.find({Metric::device_used, "GPU-a", 0, 0}));
}

TEST(Catalog, EmptyFieldsNeverEraseWhatIsKnown) {
  Catalog catalog;
  EXPECT_TRUE(catalog.describe(DeviceInfo{.id = "GPU-a", .index = 0, .name = "H200", .capacity_bytes = 141}));
  EXPECT_FALSE(catalog.describe(DeviceInfo{.id = "GPU-a"}));
  EXPECT_TRUE(catalog.describe(DeviceInfo{.id = "GPU-a", .pci_bus_id = "0000:01:00.0"}));
  ASSERT_NE(catalog.device("GPU-a"), nullptr);
  EXPECT_EQ(catalog.device("GPU-a")->name, "H200");
  EXPECT_EQ(catalog.device("GPU-a")->capacity_bytes, 141U);
  EXPECT_EQ(catalog.device("GPU-b"), nullptr);
}

TEST(Metric, NamesRoundTrip) {
  for (const Metric m : {Metric::device_used, Metric::process_used, Metric::probe_live})
    EXPECT_EQ(parse_metric(to_string(m)), m);
  EXPECT_FALSE(parse_metric("nonsense"));
}

}  // namespace
}  // namespace vramtrack

#include "fleet/unknown_metrics.hpp"

#include <gtest/gtest.h>

#include "fleet/gpus.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::fleet;

TEST(UnknownMetrics, NamesOfUsedGpuMemoryAreTold) {
  for (const char* name : {"my_gpu_memory_used_mb", "gpu_vram_usage_bytes", "acme_npu_mem_used",
                           "MLU_memory_used_bytes", "rocm_vram_used", "hami_vgpu_memory_used_bytes"})
    EXPECT_TRUE(looks_like_used_gpu_memory(name)) << name;
  for (const char* name :
       {"gpu_memory_total_bytes", "gpu_memory_free_mb", "gpu_memory_utilization", "DCGM_FI_DEV_MEM_COPY_UTIL",
        "DCGM_FI_DEV_FB_USED_PERCENT", "gpu_temperature_celsius", "node_memory_used_bytes", "gpu_power_usage_watts",
        "vllm:gpu_cache_usage_perc", "gpu_memory_clock_used", "container_memory_usage_bytes", "gpu_ecc_errors_used",
        "kube_pod_gpu_memory_limit_used"})
    EXPECT_FALSE(looks_like_used_gpu_memory(name)) << name;
}

/// The suggested lines work: they read the GPU, its machine and its memory.
TEST(UnknownMetrics, TheLinesReadTheMetric) {
  const Labels labels = {{"__name__", "acme_gpu_vram_used_mib"},
                         {"board", "GPU-0f3a6c1e-52b1-4c5d-9f10-8a7b6c5d4e3f"},
                         {"instance", "gpu7:9000"},
                         {"slot", "3"}};
  const std::string lines = exporter_lines("acme_gpu_vram_used_mib", labels);
  EXPECT_EQ(lines,
            "[[exporter]]\nname = \"acme\"\nused = [\"acme_gpu_vram_used_mib\"]\nunit = \"mib\"\n"
            "device_labels = [\"board\"]\nhost_labels = [\"instance\"]\n");
  const auto mapping = Mapping::read(lines, "own.toml");
  ASSERT_TRUE(mapping) << mapping.error().message;
  Roster roster;
  Gpus gpus(*mapping, roster);
  gpus.add(labels, {{1000, 512}});
  const auto machines = gpus.take();
  ASSERT_EQ(machines.size(), 1U);
  const Gpu& gpu = machines.begin()->second.gpus.begin()->second;
  EXPECT_EQ(gpu.device.host, "gpu7");
  EXPECT_EQ(gpu.device.id, "GPU-0f3a6c1e-52b1-4c5d-9f10-8a7b6c5d4e3f");
  EXPECT_EQ(used_memory(gpu).readings.at(0).bytes, 512U << 20U);
}

TEST(UnknownMetrics, AUnitThatTheNameDoesNotSayIsAGuess) {
  const std::string lines = exporter_lines("acme_gpu_mem_used", {{"gpu", "0"}, {"node", "n1"}});
  EXPECT_NE(lines.find("unit = \"MiB\"  # a guess"), std::string::npos) << lines;
  EXPECT_NE(lines.find("index_labels = [\"gpu\"]"), std::string::npos) << lines;
  EXPECT_NE(lines.find("host_labels = [\"node\"]"), std::string::npos) << lines;
  EXPECT_TRUE(Mapping::read(lines, "own.toml"));
}

TEST(UnknownMetrics, TheTextHasTheLinesIndented) {
  EXPECT_EQ(unknown_metrics_text({}), "");
  const std::string text = unknown_metrics_text({{"acme_gpu_mem_used", "[[exporter]]\nname = \"acme\"\n"}});
  EXPECT_EQ(text,
            "Not read: acme_gpu_mem_used looks like GPU memory. These lines in an exporters file would read it:\n\n"
            "    [[exporter]]\n    name = \"acme\"\n\n");
}

}  // namespace

// Prometheus: its exposition text and the responses of its API.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"
#include "source/log/prometheus_metric.hpp"

namespace vramtrack {
namespace {

using logtest::fixture;
using logtest::kReading_s;
using logtest::read_logs;
using logtest::read_text;
using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;
using Field = DumpReadings::Field;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z
const std::string kGpu = "GPU-34319582-d595-d1c7-d1d2-179bcfa61660";

TEST(PrometheusMetrics, OfManyExportersAreKnownByTheirNames) {
  const auto field = [](std::string_view name) { return gpu_metric(name).value().field; };
  const auto unit = [](std::string_view name) { return gpu_metric(name).value().unit_bytes; };
  EXPECT_EQ(field("DCGM_FI_DEV_FB_USED"), Field::used);
  EXPECT_EQ(unit("DCGM_FI_DEV_FB_USED"), 1ULL << 20);
  EXPECT_EQ(field("DCGM_FI_DEV_FB_FREE"), Field::free);
  EXPECT_EQ(field("DCGM_FI_DEV_FB_TOTAL"), Field::total);
  for (const auto& [part, meaning] : {std::pair("USED", Field::used), std::pair("FREE", Field::free),
                                      std::pair("TOTAL", Field::total), std::pair("CAPACITY", Field::total)})
    for (const auto& [suffix, bytes] :
         {std::pair("", 1U << 20), std::pair("_MIB", 1U << 20), std::pair("_BYTES", 1U)}) {
      const std::string name = std::string("DCGM_FI_DEV_FB_") + part + suffix;
      EXPECT_EQ(field(name), meaning) << name;
      EXPECT_EQ(unit(name), bytes) << name;
    }
  EXPECT_EQ(field("nvidia_smi_memory_used_bytes"), Field::used);
  EXPECT_EQ(unit("nvidia_smi_memory_used_bytes"), 1U);
  EXPECT_EQ(field("nvidia_gpu_memory_total_bytes"), Field::total);
  EXPECT_EQ(field("gpu_used_vram"), Field::used);
  EXPECT_EQ(unit("gpu_used_vram"), 1ULL << 20);
  EXPECT_EQ(field("npu_chip_info_hbm_used_memory"), Field::used);
  EXPECT_EQ(field("container_accelerator_memory_used_bytes"), Field::used);
  EXPECT_EQ(field("vramtrack_device_memory_used_bytes"), Field::used);
}

TEST(PrometheusMetrics, OfFactsBesideTheMemory) {
  EXPECT_EQ(gpu_metric("DCGM_FI_DEV_GPU_UTIL")->field, Field::busy);
  EXPECT_EQ(gpu_metric("DCGM_FI_DEV_GPU_UTIL")->unit_bytes, 100U) << "per cent";
  EXPECT_EQ(gpu_metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE")->unit_bytes, 10'000U) << "a ratio";
  // The names used since DCGM 4.5, which had percentages under them until 4.6.
  for (const char* const name : {"DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"})
    EXPECT_EQ(gpu_metric(name)->unit_bytes, 10'000U) << name;
  for (const std::string value : {"37", "0.37"}) {
    const auto r = read_text(
        "# TYPE DCGM_FI_DEV_FB_USED_BYTES gauge\nDCGM_FI_DEV_FB_USED_BYTES{gpu=\"0\"} 1048576 1772359200000\n"
        "DCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"0\"} " +
        value + " 1772359200000\n");
    ASSERT_EQ(r.error, "");
    EXPECT_THAT(r.raw(Metric::device_busy, "0"), ElementsAre(3700U)) << value;
  }
  EXPECT_EQ(gpu_metric("DCGM_FI_PROF_PCIE_RX_BYTES")->field, Field::received);
}

TEST(PrometheusMetrics, OfOtherThingsAreNone) {
  for (const std::string_view name :
       {"node_memory_MemFree_bytes", "process_resident_memory_bytes", "DCGM_FI_DEV_MEM_COPY_UTIL",
        "DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_DEV_FB_RESERVED_BYTES", "DCGM_FI_DEV_VGPU_FB_USED_BYTES",
        "DCGM_FI_DEV_FB_USED_RATIO", "DCGM_FI_DEV_FB_USED_PERCENT", "DCGM_FI_DEV_BAR1_USED", "DCGM_FI_DEV_MEM_CLOCK",
        "vramtrack_device_memory_peak_bytes", "vramtrack_process_memory_used_bytes", "container_memory_usage_bytes",
        "nvidia_smi_utilization_memory_ratio", "go_memstats_alloc_bytes"})
    EXPECT_FALSE(gpu_metric(name)) << name;
}

TEST(PrometheusMetrics, APercentageIsReadWhereItIsAll) {
  std::string text = "# TYPE gpu_memory_used_percent gauge\n";
  std::string both = text;
  for (int i = 0; i < 20; ++i) {
    const auto add = [&](std::string_view name, double value) {
      return fmt::format("{}{{gpu=\"0\"}} {} {}\n", name, value, 1'772'359'200'000 + 10'000 * i);
    };
    text += add("gpu_memory_used_percent", 40 + i / 4.0);
    both += add("gpu_memory_used_percent", 40 + i / 4.0) + add("gpu_memory_used_bytes", (4000 + i) * 1048576.0);
  }
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.catalog->scale.unit, AmountUnit::percent);
  EXPECT_THAT(r.device("0"), SizeIs(20));
  EXPECT_DOUBLE_EQ(r.device("0").back().second, 44.75 * 1024);
  const auto in_bytes = read_text(both);
  ASSERT_EQ(in_bytes.error, "");
  EXPECT_EQ(in_bytes.catalog->scale.unit, AmountUnit::bytes);
  EXPECT_EQ(in_bytes.device("0").back().second, 4019);
}

TEST(PrometheusMetrics, LabelsNameTheGpu) {
  EXPECT_EQ(device_id(owner_of_labels({{"gpu", "3"}, {"UUID", "GPU-a"}, {"Hostname", "n"}, {"pod", "p"}}).gpu),
            "GPU-a");
  EXPECT_EQ(device_id(owner_of_labels({{"gpu", "3"}, {"Hostname", "n"}, {"pod", "p"}}).gpu), "n/3");
  EXPECT_EQ(device_id(owner_of_labels({{"device", "nvidia2"}}).gpu), "2");
  EXPECT_EQ(device_id(owner_of_labels({{"UUID", "GPU-a"}, {"GPU_I_ID", "4"}}).gpu), "GPU-a/gi4");
  EXPECT_EQ(owner_of_labels({{"UUID", "GPU-a"}, {"GPU_I_ID", "4"}}).gpu.parent_id, "GPU-a");
  EXPECT_EQ(device_id(owner_of_labels({{"pod", "p"}, {"namespace", "ns"}}).gpu), "p/ns");
  EXPECT_EQ(device_id(owner_of_labels({}).gpu), "0");
}

TEST(Prometheus, ReadsScrapesWithDatesBetween) {
  const auto r = read_logs({fixture("dcgm_exporter.prom")});
  EXPECT_THAT(r.formats, ElementsAre("prometheus"));
  EXPECT_THAT(r.device(kGpu), ElementsAre(Pair(kTen, 4845), Pair(kTen + 15, 4945))) << "another pod, the same GPU";
  EXPECT_EQ(r.catalog->device(kGpu)->capacity_bytes, 40535ULL << 20) << "used and free";
  EXPECT_EQ(r.catalog->device(kGpu)->name, "NVIDIA A100-PCIE-40GB");
  EXPECT_THAT(r.device("GPU-2d20791a-b4a6-ba59-97f1-e95b99fe5b49/gi3"), ElementsAre(Pair(kTen, 20)));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Prometheus, ReadsTheNamesAndBytesOfDcgmExporter49AsThoseBefore) {
  const std::string labels =
      "{gpu=\"0\",UUID=\"GPU-a\",modelName=\"H100\",hostname=\"n1\",DCGM_FI_SYSTEM_DRIVER_VERSION=\"595.1\"} ";
  const auto r = read_text("date\n# TYPE DCGM_FI_DEV_FB_USED_BYTES gauge\nDCGM_FI_DEV_FB_USED_BYTES" + labels +
                           "5080350720\nDCGM_FI_DEV_FB_CAPACITY_BYTES" + labels + "42503962624\n");
  EXPECT_THAT(r.device("GPU-a"), ElementsAre(Pair(testing::_, 4845)));
  EXPECT_EQ(r.catalog->device("GPU-a")->capacity_bytes, 42503962624ULL);
  EXPECT_THAT(r.notes.warnings, testing::Not(testing::Contains(HasSubstr("does not name its unit"))));
}

TEST(Prometheus, ReadsTheTimeOfEachValue) {
  const auto r = read_logs({fixture("federate.prom")});
  EXPECT_THAT(r.formats, ElementsAre("prometheus"));
  const std::string gpu = "a1b2c3d4-0000-0000-0000-000000000001";
  EXPECT_THAT(r.device(gpu), ElementsAre(Pair(kTen + 0.123, 1024), Pair(kTen + 15.123, 1124)));
  EXPECT_EQ(r.catalog->device(gpu)->capacity_bytes, 25757220864ULL);
}

TEST(Prometheus, AGpuThatIsGoneIsNoSeriesAfterTheOthers) {
  std::string text;
  for (int scrape = 0; scrape < 40; ++scrape)
    for (const char* gpu : {"a", "b"})
      if (gpu[0] == 'a' || scrape < 10)
        text += "DCGM_FI_DEV_FB_USED{UUID=\"GPU-" + std::string(gpu) + "\"} 10 " +
                std::to_string((1772359200 + 15LL * scrape) * 1000) + "\n";
  const auto r = read_text(text);
  EXPECT_EQ(r.error, "");
  EXPECT_THAT(r.device("GPU-a"), SizeIs(40));
  EXPECT_THAT(r.device("GPU-b"), SizeIs(10));
  EXPECT_TRUE(r.in_order());
}

TEST(Prometheus, AScrapeBeginsWhereASeriesComesAgain) {
  // Two pods share GPU 0: both of its series belong to one scrape.
  const std::string scrape =
      "DCGM_FI_DEV_FB_USED{gpu=\"0\",pod=\"a\"} 10\nDCGM_FI_DEV_FB_USED{gpu=\"0\",pod=\"b\"} 10\n"
      "DCGM_FI_DEV_FB_USED{gpu=\"1\"} 20\n";
  const auto r = read_text(scrape + scrape);
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(0, 10), Pair(kReading_s, 10)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(0, 20), Pair(kReading_s, 20)));
}

TEST(Prometheus, ReadsLabelsWithAnyCharacters) {
  const auto r = read_text("DCGM_FI_DEV_FB_USED{gpu=\"0\",x=\"a} \\\"b\\\\\",UUID=\"GPU-a\"} 10\n");
  EXPECT_THAT(r.device("GPU-a"), SizeIs(1));
}

TEST(Prometheus, SaysWhichMetricIsMissing) {
  const auto r = read_text("# TYPE up gauge\nup{job=\"dcgm\"} 1\n");
  EXPECT_THAT(r.error, HasSubstr("DCGM_FI_DEV_FB_USED"));
}

TEST(Prometheus, FreeMemoryAloneNeedsTheTotal) {
  const std::string free =
      "# TYPE DCGM_FI_DEV_FB_FREE gauge\nDCGM_FI_DEV_FB_FREE{gpu=\"0\",UUID=\"GPU-1\",GPU_I_ID=\"3\"} 6012\n"
      "DCGM_FI_DEV_FB_FREE{gpu=\"0\",UUID=\"GPU-1\",GPU_I_ID=\"4\"} 6012\n";
  EXPECT_THAT(read_text(free).error, HasSubstr("'DCGM_FI_DEV_FB_FREE' is the free memory, and no metric gives"));
  const std::string total = "DCGM_FI_DEV_FB_TOTAL{gpu=\"0\",UUID=\"GPU-1\",GPU_I_ID=\"3\"} 6144\n";
  EXPECT_EQ(read_text(free + total).error, "");
}

TEST(PrometheusRange, ReadsSeriesOneAfterAnotherInOrderOfTime) {
  const auto r = read_logs({fixture("prometheus_range.json")});
  EXPECT_THAT(r.formats, ElementsAre("prometheus-range"));
  EXPECT_THAT(r.device(kGpu), ElementsAre(Pair(kTen, 4845), Pair(kTen + 15, 4945), Pair(kTen + 30, 5045)));
  EXPECT_EQ(r.catalog->device(kGpu)->capacity_bytes, 40535ULL << 20);
  EXPECT_THAT(r.device("GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"), ElementsAre(Pair(kTen, 500), Pair(kTen + 30, 501)));
  EXPECT_TRUE(r.in_order());
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

std::string range_of(int series, int points) {
  std::string out = R"({"status":"success","data":{"resultType":"matrix","result":[)";
  for (int s = 0; s < series; ++s) {
    out += std::string(s > 0 ? "," : "") + R"({"metric":{"__name__":"DCGM_FI_DEV_FB_USED","UUID":"GPU-)" +
           std::to_string(s) + R"("},"values":[)";
    for (int p = 0; p < points; ++p)
      out += std::string(p > 0 ? "," : "") + "[" + std::to_string(1772359200 + 15 * p) + ",\"" +
             std::to_string(1000 + p) + "\"]";
    out += "]}";
  }
  return out + "]}}";
}

TEST(PrometheusRange, OneLineOfManyMebibytesIsReadWhole) {
  const std::string text = range_of(12, 11'000);
  ASSERT_GT(text.size(), 2U << 20);
  const auto r = read_text(text);
  EXPECT_THAT(r.samples, SizeIs(12 * 11'000));
  EXPECT_TRUE(r.in_order());
  EXPECT_EQ(r.notes.skipped_lines, 0U) << r.notes.first_skipped[0];
}

TEST(PrometheusRange, UsedAndFreeMemoryMeetWhereverTheyAre) {
  std::string text = R"({"status":"success","data":{"resultType":"matrix","result":[)";
  for (const std::string name : {"FREE", "USED"}) {
    text += (name == "USED" ? "," : "") + (R"({"metric":{"__name__":"DCGM_FI_DEV_FB_)" + name) +
            R"(","UUID":"GPU-a"},"values":[)";
    for (int p = name == "USED" ? 500 : 0; p < 1000; ++p)
      text += (text.ends_with(']') ? ",[" : "[") + std::to_string(1772359200 + 15 * p) + ",\"1000\"]";
    text += "]}";
  }
  const auto r = read_text(text + "]}}");
  EXPECT_THAT(r.device("GPU-a"), SizeIs(500));
  EXPECT_EQ(r.catalog->device("GPU-a")->capacity_bytes, 2000ULL << 20);
}

TEST(PrometheusRange, ACutAnswerIsReadUpToItsEndAndNamed) {
  std::string text = range_of(2, 100);
  text.resize(text.size() - 20);
  const auto r = read_text(text);
  EXPECT_THAT(r.samples, SizeIs(100));
  ASSERT_EQ(r.notes.skipped_lines, 1U);
  EXPECT_THAT(r.notes.first_skipped[0], HasSubstr("does not end"));
}

TEST(PrometheusRange, AnExpressionIsTakenForUsedMemory) {
  const auto r = read_text(
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[1772359200,"5"]]}]}})");
  EXPECT_THAT(r.device("a"), ElementsAre(Pair(kTen, 5)));
  EXPECT_THAT(r.warnings(), HasSubstr("--unit"));
}

TEST(Prometheus, TheNumberInTheNameOfAMetricIsThatOfItsGpu) {
  std::string text = "# TYPE gpu0_mem_used_mib gauge\n# TYPE gpu1_mem_used_mib gauge\n";
  for (int i = 0; i < 3; ++i)
    text += fmt::format("gpu0_mem_used_mib {} {}\ngpu1_mem_used_mib 7000 {}\n", 4000 + 60 * i,
                        1772359200000 + 10000 * i, 1772359200000 + 10000 * i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(_, 4000), Pair(_, 4060), Pair(_, 4120)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(_, 7000), Pair(_, 7000), Pair(_, 7000)));
}

TEST(PrometheusRange, NamesMetricsThatAreNoMemory) {
  const auto r = read_text(
      R"({"data":{"resultType":"matrix","result":[{"metric":{"__name__":"up"},"values":[[1772359200,"1"]]}]}})");
  EXPECT_THAT(r.samples, SizeIs(0));
  EXPECT_THAT(r.warnings(), HasSubstr("the metric up is not"));
}

TEST(Prometheus, MemoryOfNobodyBesideALabelOfAGpuIsThatGpus) {
  const auto scrape = [](std::string_view metric, std::string_view labels) {
    std::string out = fmt::format("# TYPE {} gauge\n", metric);
    for (int i = 0; i < 20; ++i)
      out += fmt::format("{}{{{}}} {} {}000\n", metric, labels, 4000 + i, 1'772'359'200 + 10 * i);
    return out;
  };
  const auto r = read_text(scrape("memory_used_mib", "host=\"n1\",gpu=\"0\""));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("n1/0").size(), 20U);
  EXPECT_EQ(r.warnings(), "");
  // It is never read as a table.
  EXPECT_THAT(read_text(scrape("container_memory_usage_bytes", "pod=\"a\"")).error,
              HasSubstr("no metric of a GPU's used memory"));
}

}  // namespace
}  // namespace vramtrack

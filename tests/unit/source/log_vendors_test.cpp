// Logs of the vendors' tools: rocm-smi, amd-smi, npu-smi, dcgmi.
#include <gmock/gmock.h>

#include "log_testing.hpp"

namespace vramtrack {
namespace {

using logtest::fixture;
using logtest::kReading_s;
using logtest::read_logs;
using logtest::read_text;
using logtest::utc;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

TEST(RocmSmi, ReadsTheLinesOfShowmeminfo) {
  const auto r = read_logs({fixture("rocm_smi.log")});
  EXPECT_THAT(r.formats, ElementsAre("rocm-smi"));
  EXPECT_THAT(r.device("0"),
              ElementsAre(Pair(kTen, DoubleNear(660.08, 0.01)), Pair(kTen + 5, DoubleNear(760.08, 0.01))));
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 17163091968ULL);
  EXPECT_EQ(r.catalog->device("1")->capacity_bytes, 67108864ULL);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(RocmSmi, ReadsCsvByItsTitles) {
  const auto r = read_logs({fixture("rocm_smi.csv")});
  EXPECT_THAT(r.formats, ElementsAre("rocm-smi"));
  EXPECT_THAT(r.device("0"),
              ElementsAre(Pair(kTen, DoubleNear(26.57, 0.01)), Pair(kTen + 5, DoubleNear(126.57, 0.01))));
  EXPECT_EQ(r.catalog->device("0")->name, "Radeon RX 7900 XT");
}

TEST(RocmSmi, RefusesACsvRowThatDoesNotFitItsHeader) {
  const auto r = read_text(
      "device,Card Vendor,VRAM Total Memory (B),VRAM Total Used Memory (B)\n"
      "card0,Advanced Micro Devices, Inc.,1000000,500000\ncard0,AMD,1000000,500000\n");
  EXPECT_THAT(r.device("0"), SizeIs(1));
  ASSERT_EQ(r.notes.skipped_lines, 1U);
  EXPECT_THAT(r.notes.first_skipped[0], HasSubstr("5 fields where the header has 4"));
}

TEST(RocmSmi, ReadsJsonDocumentsBetweenDates) {
  const auto r = read_logs({fixture("rocm_smi.json")});
  EXPECT_THAT(r.formats, ElementsAre("scalars"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1024), Pair(kTen + 5, 1124)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 8192), Pair(kTen + 5, 8192)));
}

TEST(RocmSmi, ReadsThePercentageOfTheTable) {
  const auto r = read_logs({fixture("rocm_smi_concise.log")});
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 25 * 1024), Pair(kTen + 10, 26 * 1024)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 0)));
  EXPECT_EQ(r.catalog->scale.unit, AmountUnit::percent);
  LogOptions options = utc();
  options.capacity_bytes = 192ULL << 30;
  EXPECT_THAT(read_logs({fixture("rocm_smi_concise.log")}, options).device("0")[0].second, 48 * 1024);
}

TEST(RocmSmi, APercentageIsReadOnlyWhereThereIsNoAmount) {
  EXPECT_THAT(read_text("GPU[0] : GPU Memory Allocated (VRAM%): 12\n").device("0"), ElementsAre(Pair(0, 12 * 1024)));
  EXPECT_THAT(read_text("{\"card0\": {\"GPU Memory Allocated (VRAM%)\": \"12\"}}\n").device("0"),
              ElementsAre(Pair(0, 12 * 1024)));
  const auto both =
      read_text("GPU[0] : GPU Memory Allocated (VRAM%): 12\nGPU[0] : VRAM Total Used Memory (B): 1048576\n");
  EXPECT_THAT(both.device("0"), ElementsAre(Pair(0, 1)));
}

TEST(RocmSmi, SaysHowToRecordTheMemory) {
  const auto r =
      read_text("==== ROCm System Management Interface ====\nGPU[0] : Temperature (Sensor edge) (C): 47.0\n");
  EXPECT_THAT(r.error, HasSubstr("--showmeminfo vram"));
}

TEST(Dumps, WithoutDatesAreCounted) {
  LogOptions options = utc();
  options.interval_s = 5;
  const std::string dump = "GPU[0] : VRAM Total Memory (B): 1000\nGPU[0] : VRAM Total Used Memory (B): 10\n";
  const auto r = read_text(dump + dump + dump, options);
  ASSERT_THAT(r.device("0"), SizeIs(3));
  EXPECT_EQ(r.device("0")[2].first, 10);
  EXPECT_TRUE(r.catalog->clock_is_relative);
}

TEST(Dumps, ADumpWithoutADateAmongOthersIsNamed) {
  const std::string dump = "GPU[0] : VRAM Total Memory (B): 1000\nGPU[0] : VRAM Total Used Memory (B): 10\n";
  const auto r = read_text("2026-03-01 10:00:00\n" + dump + dump + "2026-03-01 10:00:10\n" + dump);
  EXPECT_THAT(r.device("0"), SizeIs(2));
  ASSERT_EQ(r.notes.skipped_lines, 1U);
  EXPECT_THAT(r.notes.first_skipped[0], HasSubstr(":4: no time before this dump"));
}

TEST(AmdSmi, ReadsTheTableOfMonitor) {
  const auto r = read_logs({fixture("amd_smi_monitor.log")});
  EXPECT_THAT(r.formats, ElementsAre("spaced"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 16), Pair(kTen + 1, 116)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 4096)));
  EXPECT_EQ(r.catalog->device("1")->capacity_bytes, 30679ULL << 20);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(AmdSmi, ReadsAPairUnderOneTitle) {
  const auto r = read_text(
      "TIMESTAMP  GPU  XCP  POWER  VRAM_USAGE\n1772359200  0  0  138 W  0.5/192.0 GB\n"
      "1772359201  0  0  138 W  1.5/ 192.0 GB\n");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 512), Pair(kTen + 1, 1536)));
}

TEST(AmdSmi, RefusesARowThatDoesNotFitItsTitles) {
  const auto r = read_text(
      "TIMESTAMP  GPU  POWER  VRAM_USED  VRAM_TOTAL\n1772359200  0  138 W  16 MB  100 MB\n"
      "1772359201  0  16 MB  100 MB\n1772359202  0  138 W  16 MB  100 MB  7\n1772359203  0  138 W  16 MB  100 MB\n"
      "1772359204  0  138 W  16 MB  100 MB\n");
  EXPECT_THAT(r.device("0"), SizeIs(3));
  EXPECT_EQ(r.notes.skipped_lines, 2U);
}

TEST(AmdSmi, ReadsCsvOfMonitorAndOfMetric) {
  const auto monitor = read_logs({fixture("amd_smi_monitor.csv")});
  EXPECT_THAT(monitor.formats, ElementsAre("csv"));
  EXPECT_EQ(monitor.warnings(), "") << "the total shows the unit";
  EXPECT_THAT(monitor.device("0"), ElementsAre(Pair(kTen, 283), Pair(kTen + 1, 1283)));
  const auto metric = read_logs({fixture("amd_smi_metric.csv")});
  EXPECT_THAT(metric.formats, ElementsAre("csv"));
  EXPECT_EQ(metric.warnings(), "");
  EXPECT_THAT(metric.device("0"), ElementsAre(Pair(kTen, 905), Pair(kTen + 5, 915)));
  EXPECT_EQ(metric.catalog->device("1")->capacity_bytes, 16368ULL << 20);
}

TEST(AmdSmi, ReadsBothKindsOfJson) {
  const auto r = read_logs({fixture("amd_smi_metric.json")});
  EXPECT_THAT(r.formats, ElementsAre("scalars"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 905), Pair(kTen + 5, 915)));
  EXPECT_EQ(r.notes.skipped_lines, 0U) << r.warnings();
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 16368ULL << 20);
  // Newer versions put the list of GPUs into an object.
  std::string newer;
  for (const int used : {905, 915})
    newer += "2026-03-01 10:00:0" + std::string(used == 905 ? "0" : "5") +
             "\n{\"gpu_data\": [{\"gpu\": 0, \"mem_usage\": {\"total_vram\": {\"value\": 16368, \"unit\": \"MB\"}, "
             "\"used_vram\": {\"value\": " +
             std::to_string(used) + ", \"unit\": \"MB\"}}}, {\"gpu\": 1, \"mem_usage\": {\"used_vram\": \"N/A\"}}]}\n";
  const auto in_object = read_text(newer);
  EXPECT_THAT(in_object.device("0"), ElementsAre(Pair(kTen, 905), Pair(kTen + 5, 915)));
  EXPECT_EQ(in_object.series(), 1U);
}

TEST(AmdSmi, ReadsTheTextOfMetricAndTheOverview) {
  const auto metric = read_logs({fixture("amd_smi_metric.log")});
  EXPECT_THAT(metric.formats, ElementsAre("amd-smi"));
  EXPECT_THAT(metric.device("0"), ElementsAre(Pair(kTen, 905), Pair(kTen + 5, 915)));
  EXPECT_THAT(metric.device("1"), SizeIs(0)) << "N/A is missing, not zero";
  const auto overview = read_logs({fixture("amd_smi.log")});
  EXPECT_THAT(overview.formats, ElementsAre("amd-smi"));
  EXPECT_THAT(overview.device("00000000:15:00.0"), ElementsAre(Pair(kTen, 65819)));
  EXPECT_EQ(overview.catalog->device("00000000:05:00.0")->name, "AMD Instinct MI300X");
}

TEST(AmdSmi, AnOwnTableWithSimilarTitlesIsNone) {
  for (const std::string_view rows :
       {"2026-03-01 10:00:00,0,4845,24576\n", "1772359200,0,5080350720,25757220864\n", "1772359200,0,4.5,24.0\n"}) {
    const auto r = read_text("timestamp,gpu,vram_used,vram_total\n" + std::string(rows));
    EXPECT_THAT(r.formats, ElementsAre("csv")) << rows;
  }
}

TEST(AmdSmi, PartitionsAreDevicesOfTheirOwn) {
  const auto r = read_text(
      "TIMESTAMP  GPU  XCP  VRAM_USED  VRAM_TOTAL\n1772359200  0  0  16 MB  100 MB\n"
      "1772359200  0  1  17 MB  100 MB\n");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 16)));
  EXPECT_THAT(r.device("0/xcp1"), ElementsAre(Pair(kTen, 17)));
  const auto own = read_text(
      "time,uuid,partition,used_mib\n1772359200,GPU-aaaaaaaa-0000,0,16\n1772359200,GPU-aaaaaaaa-0000,1,17\n"
      "1772359201,GPU-aaaaaaaa-0000,0,18\n1772359201,GPU-aaaaaaaa-0000,1,19\n");
  EXPECT_THAT(own.device("GPU-aaaaaaaa-0000"), ElementsAre(Pair(kTen, 16), Pair(kTen + 1, 18)));
  EXPECT_THAT(own.device("GPU-aaaaaaaa-0000/partition1"), ElementsAre(Pair(kTen, 17), Pair(kTen + 1, 19)));
}

TEST(NpuSmi, ReadsChipsAndProcesses) {
  const auto r = read_logs({fixture("npu_smi.log")});
  EXPECT_THAT(r.formats, ElementsAre("npu-smi"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 60056), Pair(kTen + 10, 3256)));
  EXPECT_THAT(r.device("1"), SizeIs(2));
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 65536ULL << 20);
  EXPECT_EQ(r.catalog->device("0")->name, "910B3");
  EXPECT_THAT(r.of(Metric::process_used, "0", 48988), ElementsAre(Pair(kTen, 56800)));
  ASSERT_THAT(r.events, SizeIs(1));
  EXPECT_EQ(r.events[0].pid, 48988U);
  EXPECT_DOUBLE_EQ(seconds_between(Timestamp{}, r.events[0].time), kTen + 10);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(NpuSmi, TellsTwoChipsOfOneCardApart) {
  const auto r = read_logs({fixture("npu_smi_two_chips.log")});
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(0, 3416)));
  EXPECT_THAT(r.device("0/1"), ElementsAre(Pair(0, 3195)));
}

TEST(NpuSmi, AListThatIsCutOffEndsNoProcess) {
  std::ifstream file(fixture("npu_smi.log"));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.resize(text.rfind("| No running processes found in NPU 0"));
  EXPECT_THAT(read_text(text).events, SizeIs(0));
}

TEST(DcgmiDmon, ReadsTheTimeThatTsPutsBefore) {
  const auto r = read_logs({fixture("dcgmi_dmon.log")});
  EXPECT_THAT(r.formats, ElementsAre("dcgmi-dmon"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 900)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 800), Pair(kTen + 1, 850)));
  EXPECT_THAT(r.device("GPU-I 0"), ElementsAre(Pair(kTen, 10), Pair(kTen + 1, 12)));
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 40960ULL << 20);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(DcgmiDmon, CountsReadingsWithoutAClock) {
  const auto r = read_text(
      "# Entity  FBUSD  FBFRE\n      Id\n   GPU 1  10  90\n   GPU 0  20  80\n"
      "   GPU 1  11  89\n   GPU 0  21  79\n");
  EXPECT_THAT(r.formats, ElementsAre("dcgmi-dmon"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(0, 20), Pair(kReading_s, 21)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(0, 10), Pair(kReading_s, 11)));
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 100ULL << 20);
}

TEST(DcgmiDmon, SaysHowToRecordTheMemory) {
  EXPECT_THAT(read_text("#Entity   SMACT\nID\nGPU 0     0.512\n").error, HasSubstr("dcgmi dmon -e 250,252"));
}

TEST(DcgmiDmon, NamesRowsThatDoNotFit) {
  const auto r = read_text("#Entity  FBUSD\nGPU 0  10\nGPU 0  10  20\nGPU 0\nGPU 0  1");
  EXPECT_THAT(r.device("0"), SizeIs(1));
  EXPECT_EQ(r.notes.skipped_lines, 3U);
}

}  // namespace
}  // namespace vramtrack

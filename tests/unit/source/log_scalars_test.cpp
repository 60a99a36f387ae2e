// Metrics of training runs: JSON lines, .wandb and TensorBoard files, MLflow's metric files.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"
#include "source/log/json_figures.hpp"
#include "source/log/run_file.hpp"

namespace vramtrack {
namespace {

using logtest::fixture;
using logtest::read_logs;
using logtest::read_text;
using logtest::utc;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

std::string bytes_of(const std::string& name) {
  std::ifstream file(fixture(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ScalarMetrics, AreTheMemoryOfAGpu) {
  const auto gpu = [](std::string_view name) { return scalar_metric(name).value().gpu; };
  EXPECT_EQ(gpu("system.gpu.1.memoryAllocatedBytes"), 1);
  EXPECT_EQ(gpu("gpu.0.memoryAllocatedBytes"), 0);
  EXPECT_EQ(gpu("device_id: 2/memory.used (MB)"), 2);
  EXPECT_EQ(gpu("system/gpu_3_memory_usage_megabytes"), 3);
  EXPECT_EQ(gpu("gpu_mem_used_gb_1"), 1);
  EXPECT_EQ(gpu("vram_gb"), 0);
  EXPECT_DOUBLE_EQ(scalar_metric("system/gpu_0_memory_usage_megabytes")->unit_bytes, 1e6);
  EXPECT_TRUE(scalar_metric("system.gpu.0.memoryAllocated")->is_percent);
  EXPECT_TRUE(scalar_metric("system/gpu_memory_total_megabytes")->is_total);
  for (const std::string_view name :
       {"system.gpu.0.memory", "system.gpu.process.0.memoryAllocatedBytes", "system.proc.memory.rssMB",
        "system.memory_percent", "gpu/max_memory_allocated", "loss", "system.gpu.0.temp", "system.gpu.0.gpu",
        "system/system_memory_usage_megabytes"})
    EXPECT_FALSE(scalar_metric(name)) << name;
  EXPECT_TRUE(scalar_metric("gpu_mem_reserved_gb")->is_reserved);
  EXPECT_FALSE(scalar_metric("gpu_mem_allocated_gb")->is_reserved);
}

TEST(Scalars, ReadsWandbsEvents) {
  const auto r = read_logs({fixture("wandb_events.jsonl")});
  EXPECT_THAT(r.formats, ElementsAre("scalars"));
  EXPECT_THAT(r.device("0"),
              ElementsAre(Pair(kTen + 0.25, DoubleNear(8070.53, 0.01)), Pair(kTen + 15.25, DoubleNear(8170.53, 0.01))));
  EXPECT_EQ(r.series(), 1U);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Influx, ReadsWhatTelegrafWrites) {
  const auto r = read_logs({fixture("telegraf.influx")});
  EXPECT_THAT(r.formats, ElementsAre("influx"));
  EXPECT_THAT(r.device("GPU-823bc202-6279-6f2c-d729-868a30f14d96"), ElementsAre(Pair(kTen, 549), Pair(kTen + 10, 649)));
  EXPECT_THAT(r.device("GPU-f9ba66fc-a7f5-94c5-da19-019ef2f9c665"), ElementsAre(Pair(kTen, 557), Pair(kTen + 10, 557)));
  EXPECT_EQ(r.series(), 2U);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Influx, TellsMachinesApartAndReadsEscapes) {
  std::string log;
  for (int i = 0; i < 40; ++i)
    for (const char* host : {"node7", "node\\ 8"})
      log += fmt::format("gpu_memory,host={},gpu=0 note=\"a, b=\\\"c\\\" d\",used_bytes={}i,busy=true {}000000000\n",
                         host, (host[4] == '7' ? 4000 : 100 + i) * 1048576L, 1'772'359'200 + 10 * i);
  const auto r = read_text(log);
  EXPECT_THAT(r.formats, ElementsAre("influx"));
  EXPECT_EQ(r.series(), 2U);
}

TEST(Scalars, ReadsTelegrafsJson) {
  std::string log;
  for (int i = 0; i < 10; ++i)
    for (int gpu = 0; gpu < 2; ++gpu)
      log += fmt::format(
          "{{\"fields\": {{\"memory_used\": {}, \"memory_total\": 81559, \"temperature_gpu\": {}}}, "
          "\"name\": \"nvidia_smi\", \"tags\": {{\"index\": \"{}\"}}, \"timestamp\": {}}}\n",
          4000 + 100 * gpu + i, 40 + i, gpu, 1'772'359'200 + 10 * i);
  const auto r = read_text(log);
  EXPECT_EQ(r.series(), 2U);
  EXPECT_THAT(r.device("1"), SizeIs(10));
}

TEST(Scalars, APartOfAnEpochIsNoSecond) {
  std::string log;
  for (int i = 0; i < 90; ++i)
    log += fmt::format(
        "{{\"current_steps\": {}, \"epoch\": {:.2f}, \"elapsed_time\": \"0:{:02}:{:02}\", "
        "\"remaining_time\": \"0:33:30\", \"vram_allocated\": {}}}\n",
        i, i / 100.0, i / 6, i % 6 * 10, 4.5 + i / 100.0);
  const auto r = read_text(log);
  ASSERT_THAT(r.device("0"), SizeIs(90));
  EXPECT_EQ(r.device("0").back().first - r.device("0").front().first, 890);
}

TEST(LongCsv, ReadsInfluxsAnnotatedCsvAndMlflowsTable) {
  for (const char* name : {"influx_annotated.csv", "mlflow_metrics.csv"}) {
    const auto r = read_logs({fixture(name)});
    EXPECT_THAT(r.formats, ElementsAre("long-csv"));
    EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 4000), Pair(kTen + 10, 4100))) << name;
    EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 9000), Pair(kTen + 10, 9000))) << name;
    EXPECT_EQ(r.series(), 2U);
    EXPECT_EQ(r.notes.skipped_lines, 0U);
  }
}

TEST(Scalars, ReadsAnArrayAndOnesOwnLogger) {
  const auto r = read_text(
      "[{\"time\": \"2026-03-01T10:00:00Z\", \"gpu0_mem_used_mib\": 100, \"gpu1_mem_used_mib\": 200, \"loss\": 1},\n"
      " {\"time\": \"2026-03-01T10:00:01Z\", \"gpu0_mem_used_mib\": 101, \"gpu1_mem_used_mib\": null}]\n");
  EXPECT_THAT(r.formats, ElementsAre("scalars"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 100), Pair(kTen + 1, 101)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 200)));
}

TEST(Scalars, AnObjectWithoutATimeIsNamedOnlyIfItHasMemory) {
  const auto r = read_text(
      "{\"time\": 1772359200, \"gpu_mem_mib\": 5}\n{\"loss\": 3}\n{\"gpu_mem_mib\": 5}\n"
      "{\"time\": 1772359201, \"gpu_mem_mib\": -5}\n{\"time\": 1772359202, \"gpu_mem_mib\": 6");
  EXPECT_THAT(r.device("0"), SizeIs(1));
  EXPECT_EQ(r.notes.skipped_lines, 3U);
}

TEST(Scalars, TakesTheTimeOfTheLineBefore) {
  for (const std::string_view gap : {"\n", " "}) {  // `date` before each object, or a time before it on its line
    std::string text;
    for (const char second : {'0', '1', '2'})
      text += fmt::format("2026-03-01 10:00:0{}{}{{\"gpu_mem_used\": {{\"value\": 1{}, \"unit\": \"GiB\"}}}}\n", second,
                          gap, second);
    const auto r = read_text(text);
    EXPECT_THAT(r.formats, ElementsAre("scalars"));
    EXPECT_THAT(r.device("0"),
                ElementsAre(Pair(kTen, 10 * 1024), Pair(kTen + 1, 11 * 1024), Pair(kTen + 2, 12 * 1024)));
    EXPECT_EQ(r.notes.skipped_lines, 0U) << r.warnings();
  }
}

TEST(Scalars, AReadingAboveTheTotalIsNone) {
  const auto r = read_text(
      "{\"time\": 1772359200, \"gpu_mem_used_mib\": 5, \"gpu_mem_total_mib\": 8000}\n"
      "{\"time\": 1772359201, \"gpu_mem_used_mib\": 9000, \"gpu_mem_total_mib\": 8000}\n"
      "{\"time\": 1772359202, \"gpu_mem_used_mib\": 6, \"gpu_mem_total_mib\": 8000}\n");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 5), Pair(kTen + 2, 6)));
  EXPECT_THAT(r.notes.first_skipped, ElementsAre(HasSubstr(":2: used memory above the total")));
}

TEST(Scalars, NamesTheMetricsThatAreNotRead) {
  const auto r = read_text("{\"step\": 1, \"gpu_mem_allocated_mib\": 5, \"gpu_mem_used_mib\": 7}\n");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(60, 7)));
  EXPECT_THAT(r.warnings(), HasSubstr("gpu_mem_allocated_mib"));
}

TEST(Scalars, AMetricThatBeginsLateIsNamed) {
  std::string text;
  for (int i = 0; i < 6000; ++i)
    text += "{\"time\": " + std::to_string(1772359200 + i) + ", \"gpu0_mem_used_mib\": 5, \"some_other_metric\": 1}\n";
  ASSERT_GT(text.size(), 300'000U);
  const auto r = read_text(text + "{\"time\": 1772370000, \"gpu1_mem_used_mib\": 5}\n");
  EXPECT_THAT(r.warnings(), HasSubstr(":6001: the metric 'gpu1_mem_used_mib' begins only here"));
}

TEST(Scalars, SaysWhichMetricsThereAre) {
  EXPECT_THAT(read_text("{\"time\": 1772359200, \"loss\": 0.5}\n").error, HasSubstr("'loss'"));
}

TEST(Scalars, ReadsAPercentageOfTheCapacity) {
  LogOptions options = utc();
  options.capacity_bytes = 40ULL << 30;
  const std::string_view text = "{\"_timestamp\": 1772359200, \"system.gpu.0.memoryAllocated\": 50}\n";
  EXPECT_THAT(read_text(text, options).device("0"), ElementsAre(Pair(kTen, 20 * 1024)));
  const auto alone = read_text(text);
  EXPECT_EQ(alone.catalog->scale.unit, AmountUnit::percent);
  EXPECT_EQ(alone.catalog->scale.bytes(static_cast<double>(alone.samples.at(0).bytes)), "50 %");
  EXPECT_EQ(alone.catalog->device("0")->capacity_bytes, Scale::kWholeBytes);
}

TEST(Scalars, APercentageOfATotalIsInBytes) {
  for (const char* const text :
       {"{\"time\": 1772359200, \"gpu_mem_percent\": 50, \"gpu_mem_total_mib\": 8000}\n",
        "{\"time\": 1772359200, \"gpu_mem_percent\": 50}\n{\"time\": 1772359200, \"gpu_mem_total_mib\": 8000}\n"}) {
    const auto r = read_text(text);
    EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 4000))) << r.error;
    EXPECT_TRUE(r.catalog->scale.counts_bytes());
  }
}

/// One scale cannot have both percentages and amounts, and one GPU's size is not that of another.
TEST(Scalars, APercentageBesideAmountsOfOtherGpusIsNotRead) {
  const std::string_view text =
      "{\"_timestamp\": 1772359200, \"system.gpu.0.memoryAllocatedBytes\": 1048576, \"system.gpu.1.memoryAllocated\": "
      "50}\n";
  const auto r = read_text(text);
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1)));
  EXPECT_THAT(r.device("1"), testing::IsEmpty());
  EXPECT_THAT(r.notes.warnings,
              ElementsAre(testing::AllOf(HasSubstr("of GPU 1 there is only"), HasSubstr("--capacity"))));
  LogOptions options = utc();
  options.capacity_bytes = 40ULL << 30;
  EXPECT_THAT(read_text(text, options).device("1"), ElementsAre(Pair(kTen, 20 * 1024)));
}

/// The capacity in a message is in bytes, and so is a limit.
TEST(Scalars, AMessageDoesNotChangeTheScaleOfPercentages) {
  logtest::Files files;
  files.write(
      "output.log",
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 "
      "GiB of which 1.00 GiB is free.\n");
  const auto r = read_logs(
      {files.write("wandb-events.jsonl", "{\"_timestamp\": 1772359200, \"system.gpu.0.memoryAllocated\": 95.5}\n")});
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, Scale::kWholeBytes);
  ASSERT_THAT(r.events, SizeIs(1));
  EXPECT_EQ(r.events[0].kind, Event::Kind::out_of_memory);
}

TEST(RunFiles, ReadsAWandbFileOfSeveralBlocks) {
  ASSERT_GT(bytes_of("run.wandb").size(), 32U * 1024);
  const auto r = read_logs({fixture("run.wandb")});
  EXPECT_THAT(r.formats, ElementsAre("scalars"));
  const auto used = r.device("0");
  ASSERT_THAT(used, SizeIs(300));
  EXPECT_THAT(used[0], Pair(kTen + 0.25, DoubleNear(8070.53, 0.01)));
  EXPECT_THAT(used[299], Pair(kTen + 15 * 299 + 0.25, DoubleNear(8369.53, 0.01)));
  EXPECT_THAT(r.notes.warnings, ElementsAre(HasSubstr("no log of the program was read with it")));
}

TEST(RunFiles, ReadsTensorBoardsScalarsAndTensors) {
  const auto r = read_logs({fixture("events.out.tfevents.1772359200.node1.4242.0")});
  EXPECT_THAT(r.formats, ElementsAre("scalars"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen + 0.5, 4845), Pair(kTen + 10.5, 4945), Pair(kTen + 20.5, 5045),
                                         Pair(kTen + 30.5, 5145)));
}

TEST(RunFiles, DamageIsToldAndWhatIsWholeIsRead) {
  logtest::Files files;
  std::string wandb = bytes_of("run.wandb");
  wandb[40'000] = static_cast<char>(wandb[40'000] ^ 1);
  const auto damaged = read_logs({files.write("damaged.wandb", wandb)});
  EXPECT_THAT(damaged.device("0"), SizeIs(299));
  EXPECT_THAT(damaged.warnings(), HasSubstr("1 damaged record was skipped"));
  wandb = bytes_of("run.wandb");
  wandb.resize(wandb.size() - 10);
  const auto cut = read_logs({files.write("cut.wandb", wandb)});
  EXPECT_THAT(cut.device("0"), SizeIs(299));
  EXPECT_THAT(cut.warnings(), HasSubstr("cut off"));

  std::string events = bytes_of("events.out.tfevents.1772359200.node1.4242.0");
  events[events.size() - 5] = static_cast<char>(events[events.size() - 5] ^ 1);
  const auto r = read_logs({files.write("events", events)});
  EXPECT_THAT(r.device("0"), SizeIs(3));
  EXPECT_THAT(r.warnings(), HasSubstr("damaged"));
}

TEST(RunFiles, GiveTheSameLinesHoweverTheyAreCut) {
  for (const char* name : {"run.wandb", "events.out.tfevents.1772359200.node1.4242.0"}) {
    const std::string bytes = bytes_of(name);
    const auto whole = std::move(*RunFile::recognise(bytes));
    ASSERT_NE(whole, nullptr);
    std::string expected;
    whole->feed(bytes, expected);
    const auto cut = std::move(*RunFile::recognise(bytes));
    std::string lines;
    for (const char c : bytes) cut->feed({&c, 1}, lines);
    EXPECT_EQ(lines, expected) << name;
  }
}

TEST(RunFiles, AnUnknownVersionIsRefused) {
  std::string wandb = bytes_of("run.wandb");
  wandb[6] = 3;
  logtest::Files files;
  EXPECT_THAT(read_logs({files.write("new.wandb", wandb)}).error, HasSubstr("version 3"));
}

TEST(RunFiles, WithoutMemorySayWhatTheyHold) {
  // The header record of an event file alone.
  const std::string events = bytes_of("events.out.tfevents.1772359200.node1.4242.0");
  logtest::Files files;
  const auto r = read_logs({files.write("events", events.substr(0, 40))});
  EXPECT_THAT(r.error, HasSubstr("no GPU memory among the metrics"));
}

TEST(Mlflow, TakesTheMetricFromTheFilesName) {
  const auto r = read_logs({fixture("mlruns/0/8d1f3c/metrics/system/gpu_0_memory_usage_megabytes")});
  EXPECT_THAT(r.formats, ElementsAre("mlflow"));
  EXPECT_THAT(r.device("0"),
              ElementsAre(Pair(kTen, DoubleNear(8070.53, 0.01)), Pair(kTen + 10, DoubleNear(8170.53, 0.01)),
                          Pair(kTen + 20, DoubleNear(8270.53, 0.01))));
}

TEST(Mlflow, SomeonesRowsWithATotalAreNone) {
  EXPECT_THAT(read_text("1772359200000 4845 24576\n1772359201000 4846 24576\n").formats,
              testing::Not(ElementsAre("mlflow")));
}

TEST(Mlflow, RefusesAMetricThatIsNoMemory) {
  logtest::Files files;
  const std::string path = files.write("loss", "1772359200000 0.5 0\n1772359201000 0.4 1\n");
  EXPECT_THAT(read_logs({path}).error, HasSubstr("'loss'"));
  LogOptions options = utc();
  options.unit = "GiB";
  EXPECT_THAT(read_logs({path}, options).device("0"),
              ElementsAre(Pair(kTen, 512), Pair(kTen + 1, DoubleNear(409.6, 0.01))));
}

}  // namespace
}  // namespace vramtrack

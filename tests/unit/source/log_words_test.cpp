// Free text: figures recognised by the words and units beside them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {
namespace {

using logtest::read_text;
using logtest::utc;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr double kTen = 1772359200;  // 2026-03-01 10:00:00 UTC

/// "used 5120 MiB, total 24576 MiB": the figures in a line, in whole MiB (or unchanged, without a unit).
std::string figures(std::string_view line) {
  LineFigures found;
  find_figures(line, found);
  std::string out;
  for (const MemoryFigure& f : found.figures) {
    constexpr std::string_view kRoles[] = {"none", "used", "allocated", "reserved", "free", "total", "peak"};
    if (!out.empty()) out += ", ";
    if (f.gpu >= 0) out += fmt::format("{}:", f.gpu);
    out += kRoles[static_cast<std::size_t>(f.role)];
    if (f.percent)
      out += fmt::format(" {} %", f.number);
    else if (f.unit_bytes == 0)
      out += fmt::format(" {}", f.number);
    else
      out += fmt::format(" {:.0f}M", static_cast<double>(f.bytes(1)) / 1048576.0);
  }
  return out;
}

void expect_figures(std::string_view expected, std::string_view line) {
  EXPECT_EQ(figures(line), expected) << line;
}

TEST(FindFigures, ReadsAmountsByTheirWords) {
  expect_figures("used 2048M", "2026-04-10 03:56:07,662 [VRAM] Before load : 2.00 GB");
  expect_figures("allocated 6442M, reserved 6656M",
                 "Timestamp: 2026-02-01 09:00:00, GPU Memory Allocated: 6441.54 MB, GPU Memory Reserved: 6656.00 MB");
  expect_figures("used 812M", "Used Memory:812 Mb");
  expect_figures("used 5120M, free 3072M, total 8192M", "GPU Memory: 5 GB used, 3 GB free, 8 GB total");
  expect_figures("used 5120M, total 24576M", "VRAM usage: 5 GB (24 GB total)");
  expect_figures("used 5120M, total 24576M", "mem 5 / 24 GB");
  expect_figures("0:used 5120M, 1:used 6144M", "GPU 0: memory used 5 GB, GPU 1: memory used 6 GB");
  expect_figures("1:allocated 512M, 1:reserved 1024M", "cuda:1 allocated=512M reserved=1G");
  expect_figures("used 5123M", "gpu_mem_mb: 5123, loss 0.25");
  expect_figures("peak 5120M", "max memory allocated: 5 GB");
  expect_figures("used 512M", "GPU memory (MiB): 512");
  expect_figures("used 45 %", "memory usage 45 %");
}

TEST(FindFigures, ReadsOtherLanguages) {
  expect_figures("used 5120M, free 3072M, total 8192M", "显存已用: 5 GB, 空闲: 3 GB, 总量: 8 GB");
  expect_figures("used 5120M, total 8192M", "GPU显存占用：5120MB / 8192MB");
  expect_figures("used 5120M, free 3072M", "GPUメモリ使用量: 5 GB 空きメモリ: 3 GB");
  expect_figures("used 5120M, total 8192M", "GPU 메모리 사용량: 5 GB, 전체: 8 GB");
  expect_figures("used 5632M, free 2560M", "Grafikspeicher belegt: 5,5 GB, verfügbar: 2,5 GB");
}

TEST(FindFigures, AWordBehindATimeIsNoZone) {
  expect_figures("free 20000M, total 24000M", "2026-03-02 02:40:15 Free Memory: 20000 MB, Total Memory: 24000 MB");
  expect_figures("used 5120M", "02:40:15 VRAM: 5 GiB");
}

TEST(FindFigures, ProgressBarsHaveNoLabels) {
  expect_figures("used 5120M, free 19456M",
                 " 45%|####      | 45/100 [00:12<00:15, 3.61it/s] VRAM 5 GiB in use, 19 GiB available");
}

TEST(FindFigures, NumbersHaveThousandsOrDecimalCommas) {
  expect_figures("used 7340M", "VRAM used 7,340 MB");
  expect_figures("used 2560M", "VRAM used 2,5 GB");
  expect_figures("used 2560M", "VRAM used 2,500 GB");  // no card has 2500 GB
}

TEST(FindFigures, LeavesOutWhatIsNoMemoryOfAGpuInUse) {
  for (const char* word : {"Requested", "needed", "required", "Estimated"})
    expect_figures("", fmt::format("{} memory: 1.9 GB", word));
  for (const std::string_view line :
       {"downloading model 3.2 GB", "RAM used 5 GB", "CPU memory: 5 GB", "traffic 120 MB/s", "GPU util 45 %",
        "NVIDIA A100 40GB", "loss 0.25 lr 0.001", "step 100/2000", "checkpoint of 5 GB written", "swap used 3 GB",
        "KV cache: 5 GB", "GPU temperature 45", "batch 32 took 3.2ms"})
    expect_figures("", line);
}

TEST(FindFigures, WhatIsMeasuredOfAGpuIsNoIndex) {
  expect_figures("used 4M", "{\"memory_used\":4,\"temperature_gpu\":30,\"vram_used\":\"4 MiB\"}");
  expect_figures("used 5120M", "power_gpu=71 vram used 5 GB");
  expect_figures("0:used 5120M", "used_gpu0: 5 GB");
}

TEST(FindFigures, TheNumberOfAModelIsNoAmount) {
  expect_figures("", "VRAM available: NVIDIA GeForce RTX 5080 Laptop GPU");
  expect_figures("used 512M", "GPU memory used on GTX 1060 6GB: 512 MiB");
  expect_figures("0:free 56153M, 0:total 81050M",
                 "cuda:0 NVIDIA A100 80GB PCIe: 56153 MiB free out of 81050 MiB total, temperature: 74 C");
  expect_figures("1:used 4000M", "NVIDIA A100-SXM4-40GB on cuda:1: 4000 MiB used");
  expect_figures("used 4000M, total 40960M", "NVIDIA A100 4000 MiB / 40960 MiB used");
}

TEST(FindFigures, WhatStandsBesideTheNameOfACardIsItsCapacity) {
  LineFigures found;
  find_figures("Ultralytics 8.3.0 Python-3.10.12 torch-2.4.0 CUDA:0 (NVIDIA GeForce GTX 1060 6GB, 6075MiB)", found);
  EXPECT_TRUE(found.figures.empty());
  ASSERT_EQ(found.capacities.size(), 1U);
  EXPECT_EQ(found.capacities[0].bytes(1), 6075ULL << 20U);
  EXPECT_EQ(found.capacities[0].gpu, 0);
}

TEST(FindFigures, ALimitStandsRightBesideTheMemoryItLimits) {
  expect_figures("", "command=python3 -m server --mem-fraction-static 0.8 --tp-size 16 --device npu");
  expect_figures("used 512M, total 8192M", "GPU memory used: 512 MiB, GPU memory limit: 8192 MiB");
  expect_figures("total 8192M", "VRAM size: 8192 MiB");
}

TEST(FindFigures, HowBusyTheBusIsIsNotHowFullTheMemoryIs) {
  expect_figures("", "GPU 0 (RTX 4090 D): GPU Utilization: 21% | Memory Utilization: 17%");
  expect_figures("0:used 17 %", "GPU 0: GPU Utilization: 21% | Memory Used: 17%");
  expect_figures("used 17 %", "GPU memory utilization: 17%");
}

TEST(FindFigures, AnOrdinalIsNoAmount) {
  expect_figures("used 2048M", "[VRAM] During text generation (loop#3): 2.00 GB");
  expect_figures("1:used 98M", "GPU #1 VRAM used: 98MB");
}

TEST(FindFigures, WhatIsDoneNowIsAChange) {
  expect_figures("", "[memory] Reserving 805 MB, device gpu0");
  expect_figures("0:reserved 805M", "[memory] Reserved 805 MB, device gpu0");
  expect_figures("used 805M", "GPU memory: using 805 MB");
}

TEST(FindFigures, CurrentBesideAPeakIsInUseAndTheHostsLineIsNot) {
  expect_figures("0:used 0.25, 0:peak 2.55", "Memory info of GPU /physical_device:GPU:0: current: 0.25, peak: 2.55");
  expect_figures("", "Memory info of CPU: total:201.37Gb, available: 190.78Gb, percent: 5.3%");
}

TEST(FindFigures, LabelsMayStandInBracketsBehindEachAmount) {
  expect_figures("allocated 12M, reserved 20M", "Memory usage at start: 12.0 MB (allocated), 20.0 MB (reserved)");
  expect_figures("used 5120M, free 19456M", "VRAM: 5 GB (used), 19 GB (free)");
}

TEST(FindFigures, WordsForTheMomentAreNotForTheMemory) {
  expect_figures("allocated 897M", "train - memory allocated after emptying cache: 896.72 MB");
  expect_figures("used 5120M", "memory used before loading the model: 5 GB");
  expect_figures("", "model: 5 GB, cache used: 2 GB");
}

TEST(FindFigures, AnOwnerAndAUnitMayStandApartFromTheFigures) {
  expect_figures("2:used 45568M, 2:total 98304M", "Using (GB) 44.5 / 96 (46.35%) on TPU_2(process=0,(0,1,0,0))");
}

TEST(FindFigures, ShortNamesInCapitalsAreAnAllocators) {
  expect_figures("used 62464M, peak 63488M", "MA 61 GB         Max_MA 62 GB         CA 63 GB         Max_CA 64 GB");
  expect_figures("", "ca 5 GB");
}

TEST(FindFigures, CountsStand) {
  const auto counts = [](std::string_view line) {
    LineFigures found;
    find_figures(line, found);
    std::string out;
    for (const LineCount& c : found.counts) out += fmt::format("{} {};", count_word(c.meaning), c.value);
    return out;
  };
  EXPECT_EQ(counts("request 7: used 9.000 GB"), "request 7;");
  EXPECT_EQ(counts("Epoch [3/10], Step [200/1000], mem 5 GB"), "epoch 3;step 200;");
  EXPECT_EQ(counts(" 45%|####    | 45/100 [00:12<00:15, 3.6it/s, mem=5.2GB]"), "iteration 45;");
  EXPECT_EQ(counts("第 5 步: 显存 5 GB"), "step 5;");
}

TEST(Words, ReadsAllocatedAndReservedAsSeriesOfTheProgram) {
  std::string text;
  for (int i = 0; i < 10; ++i)
    text += fmt::format("2026-03-01 10:00:0{} mem allocated: {} MB, reserved: {} MB\n", i, 100 + i, 200);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.of(Metric::allocator_allocated, "0"), SizeIs(10));
  EXPECT_EQ(r.of(Metric::allocator_allocated, "0").back(), std::make_pair(kTen + 9, 109.0));
  EXPECT_EQ(r.of(Metric::allocator_reserved, "0").back(), std::make_pair(kTen + 9, 200.0));
  EXPECT_EQ(r.series(), 2U);
}

TEST(Words, BlocksOfLinesAreOneReading) {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text += fmt::format("TIME:2026-03-01 10:00:0{}\nFree Memory:{} Mb\nTotal Memory:8192 Mb\n\n", i, 8000 - i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 192), Pair(kTen + 1, 193), Pair(kTen + 2, 194), Pair(kTen + 3, 195),
                                         Pair(kTen + 4, 196)));
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 8192ULL << 20);
}

TEST(Words, ALineCanNameTheGpuOfThoseAfterIt) {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text += fmt::format(
        "2026-03-01 10:00:0{}\nGPU 0\n  used: {} MiB\n  total: 8192 MiB\nGPU 1\n  used: 300 MiB\n  total: 8192 MiB\n",
        i, 100 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(5));
  EXPECT_EQ(r.device("0").back(), std::make_pair(kTen + 4, 104.0));
  EXPECT_EQ(r.device("1").back(), std::make_pair(kTen + 4, 300.0));
}

TEST(Words, ProgramsToldApartByPrefixesAreSeries) {
  std::string text;
  for (int i = 0; i < 9; ++i)
    for (int w = 0; w < 2; ++w)
      text += fmt::format("trainer-{}  | 2026-03-01 10:00:0{} VRAM used: {} MiB\n", w, i, w == 0 ? 100 + i : 5000);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("trainer-0"), SizeIs(9));
  EXPECT_THAT(r.device("trainer-1"), SizeIs(9));
}

TEST(Words, StepsAreNotSeconds) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += fmt::format("step {}: VRAM used {} MiB\n", 50 * i, 1000 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.catalog->scale.step, "step");
  EXPECT_TRUE(r.catalog->clock_is_relative);
  ASSERT_THAT(r.device("0"), SizeIs(20));
  EXPECT_NEAR(r.device("0").back().first / r.catalog->scale.step_s, 950, 1e-6);
  EXPECT_THAT(r.warnings(), HasSubstr("growth is per step"));
  LogOptions timed = utc();
  timed.interval_s = 2;
  EXPECT_EQ(read_text(text, timed).catalog->scale, Scale{});
  EXPECT_EQ(read_text(text, timed).device("0").back().first, 1900);
}

TEST(Words, ATotalBeforeTheFirstTimeIsOfAllReadings) {
  std::string text = "GPU 0: NVIDIA A10, total memory 23028 MiB\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("2026-03-01 10:00:{:02} allocated {} MiB reserved 4000 MiB\n", i, 3000 + i);
  const auto r = read_text(text);
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 23028ULL << 20);
}

TEST(Words, HoursAndMinutesAreATime) {
  std::string lines, brackets, table = "| Time | GPU memory used |\n|---|---|\n";
  for (int i = 0; i < 90; ++i) {
    const std::string time = fmt::format("{:02}:{:02}", (23 + i / 60) % 24, i % 60);  // past midnight
    lines += fmt::format("{} step {} GPU memory used {} MiB\n", time, i, 3000 + i);
    brackets += fmt::format("trainer-1  | [{}] INFO GPU memory used {} MiB\n", time, 3000 + i);
    table += fmt::format("| {} | {} MiB |\n", time, 3000 + i);
  }
  for (const std::string& text : {lines, brackets, table}) {
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "");
    EXPECT_FALSE(r.catalog->scale.counts_steps()) << text.substr(0, 80);
    const auto read = r.device("0");
    ASSERT_THAT(read, SizeIs(90));
    EXPECT_EQ(read.back().first - read.front().first, 89 * 60);
  }
}

TEST(Words, HoursAndMinutesThatDoNotRiseAreNoTime) {
  std::string remaining, shared;
  for (int i = 0; i < 30; ++i) {
    remaining += fmt::format("00:{:02} left, step {}: GPU memory used {} MiB\n", 30 - i, i, 3000 + i);
    shared += fmt::format("10:{:02} step {}: GPU memory used {} MiB\n", i / 6, i, 3000 + i);
  }
  EXPECT_TRUE(read_text(remaining).catalog->scale.counts_steps());
  const auto r = read_text(shared);
  EXPECT_TRUE(r.catalog->scale.counts_steps());
  EXPECT_THAT(r.warnings(), HasSubstr("times such as '10:00' have no seconds, and several readings share one"));
  const auto either =
      read_text("00:01 GPU memory used 3 GiB\n00:02 GPU memory used 4 GiB\n00:03 GPU memory used 5 GiB\n");
  EXPECT_THAT(either.warnings(), HasSubstr("hours and minutes or minutes and seconds"));
}

TEST(Words, ReadsTheSecondsSince1970BehindAPrefix) {
  for (const std::string_view prefix :
       {"", "0: ", "trainer-0  | ", "[pod/trainer-7f9c/main] ",
        "INFO:trainer:", "WARNING:root:", "node7 python[4242]: ", "[pod/trainer-7f9c/main] INFO:train:"}) {
    std::string text;
    for (int i = 0; i < 3; ++i)
      text += fmt::format("{}{} GPU memory used: {} MiB\n", prefix, 1772359200 + 30 * i, 4000 + i);
    const auto r = read_text(text);
    EXPECT_THAT(r.device("0"), ElementsAre(Pair(1772359200, 4000), Pair(1772359230, 4001), Pair(1772359260, 4002)))
        << prefix << r.error << r.warnings();
  }
  // A figure is not a time, whatever it looks like.
  const auto bytes = read_text(
      "INFO:trainer:step 1 memory used: 1772359200 bytes\nINFO:trainer:step 2 memory used: 1782359200 bytes\n");
  EXPECT_EQ(bytes.catalog->scale.step, "step") << bytes.error;
}

TEST(Words, CountsReadingsWhereThereIsNeitherAClockNorACount) {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text += fmt::format("{{'loss': 0.5, 'epoch': {:.2f}, 'gpu_memory': '{} MiB'}}\n", 0.1 * i, 8000 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.catalog->scale.step, "reading");
  EXPECT_THAT(r.device("0"), SizeIs(5));
  EXPECT_THAT(r.warnings(), HasSubstr("growth is per reading"));
  EXPECT_THAT(r.warnings(), HasSubstr("--interval"));

  LogOptions options;
  options.interval_s = 10;
  const auto timed = read_text(text, options);
  EXPECT_FALSE(timed.catalog->scale.counts_steps());
  ASSERT_THAT(timed.device("0"), SizeIs(5));
  EXPECT_EQ(timed.device("0")[1].first - timed.device("0")[0].first, 10);
}

TEST(Words, ReadsWhatTrainersPrint) {
  using logtest::fixture;
  using logtest::read_logs;
  const auto yolo = read_logs({fixture("ultralytics.log")});
  ASSERT_EQ(yolo.error, "");
  EXPECT_EQ(yolo.catalog->scale.step, "epoch");
  ASSERT_THAT(yolo.device("0"), SizeIs(3));
  EXPECT_NEAR(yolo.device("0")[2].second, 3.7 * 1024, 0.1);

  const auto mm = read_logs({fixture("mmengine.log")});
  ASSERT_EQ(mm.error, "");
  EXPECT_THAT(mm.device("0"), ElementsAre(Pair(kTen + 30, 6836), Pair(kTen + 60, 6902), Pair(kTen + 90, 6971)));
  EXPECT_THAT(mm.warnings(), HasSubstr("whose memory 'memory:' is"));
  const auto host = read_text("host memory: 3000\nhost memory: 3100\nhost memory: 3200\n");
  EXPECT_NE(host.error, "");

  const auto trainer = read_logs({fixture("trainer_memory.log")});
  ASSERT_EQ(trainer.error, "");
  EXPECT_EQ(trainer.series(), 1U) << "a delta is no level";
  EXPECT_THAT(trainer.of(Metric::allocator_allocated, "0"), SizeIs(3));
  EXPECT_NEAR(static_cast<double>(trainer.catalog->device("0")->capacity_bytes.value_or(0)) / 1073741824.0, 29.85,
              0.01);
}

TEST(Words, UpdatesOfAProgressBarAreLines) {
  const auto text_of = [](std::string_view end) {
    std::string text;
    for (int i = 0; i < 300; ++i)
      text += fmt::format("\r{:3}%|##   | {}/300 [00:45<10:00, 5.00s/it, gpu_mem={:.2f}G]", i / 3, i, 3 + i * 0.02);
    return text + std::string(end);
  };
  for (const std::string_view end : {"\n", "", "\r\n"}) {
    const auto r = read_text(text_of(end));
    ASSERT_EQ(r.error, "");
    // The last one may be truncated, if nothing ends it.
    EXPECT_THAT(r.device("0"), SizeIs(end.empty() ? 299 : 300));
    EXPECT_THAT(r.warnings(),
                AllOf(HasSubstr("0 other lines skipped"), HasSubstr("carriage returns within its lines")));
  }
  // A line end of two or three characters counts as one.
  std::string windows;
  for (int i = 0; i < 20; ++i) windows += fmt::format("step {}: GPU memory used {} MiB\r\r\n", i, 3000 + i);
  const auto r = read_text(windows);
  EXPECT_THAT(r.device("0"), SizeIs(20));
  EXPECT_THAT(r.warnings(), Not(HasSubstr("carriage returns")));
}

TEST(Words, SaysWhatItTookAndThePatternThatDoesTheSame) {
  std::string text = "loading the model\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("2026-03-01 10:00:{:02} [VRAM] {} : {}.5 GB\nloss 0.{}\n", i, i < 3 ? "load" : "run", 2 + i, i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.warnings(), AllOf(HasSubstr("used memory by 'VRAM' ('2.5 GB')"), HasSubstr("21 other lines skipped")));
  const std::string warnings = r.warnings();
  const std::size_t at = warnings.find("--line-pattern '") + 16;
  LogOptions options = utc();
  options.line_pattern = warnings.substr(at, warnings.find('\'', at) - at);
  const auto again = read_text(text, options);
  ASSERT_EQ(again.error, "") << options.line_pattern;
  EXPECT_EQ(again.device("0"), r.device("0"));
}

TEST(Words, FreeMemoryAloneNeedsNoTotal) {
  std::string text = "10:00:00 waiting for 70000MB of VRAM\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("10:01:{:02} GPU 0 VRAM available: {} MiB\n10:01:{:02} GPU 1 VRAM available: {} MiB\n", i, 4602,
                        i, 40000 - 100 * i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("1"), SizeIs(30));
  EXPECT_EQ(r.device("1").back().second - r.device("1").front().second, 2900);
  EXPECT_EQ(r.device("0").back().second, r.device("0").front().second);
  EXPECT_THAT(r.warnings(), HasSubstr("counted from the most"));
}

TEST(Words, AFewLinesWithFreeMemoryAreNoReadings) {
  const auto r = read_text(
      "fit: 9111 MiB of device memory vs. 16048 MiB of free device memory\nGPU memory free: 15000 MiB\n"
      "GPU memory free: 900 MiB\n");
  EXPECT_THAT(r.error, HasSubstr("only the free memory, too few"));
}

TEST(Words, APropertyOfTheHardwareIsNoReading) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += "GPU pool allocated granule: 4KB\n";
  EXPECT_THAT(read_text(text).error, HasSubstr("not even two of them say how much is in use"));
}

TEST(Words, WhatAStepTakesIsNotWhatIsInUse) {
  std::string text;
  double free_gb = 115.5;
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("[10:{:02}:00] step {} begin. avail mem={:.2f} GB\n", i, i, free_gb);
    const double taken_gb = 1.5 + i % 3;
    free_gb -= taken_gb;
    text +=
        fmt::format("[10:{:02}:30] step {} end. mem usage={:.2f} GB, avail mem={:.2f} GB\n", i, i, taken_gb, free_gb);
  }
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.warnings(), HasSubstr("do not add up to one total"));
  ASSERT_THAT(r.device("0"), SizeIs(24));
  EXPECT_EQ(r.device("0").front().second, 0);
  EXPECT_NEAR(r.device("0").back().second, (115.5 - free_gb) * 1024, 1);
}

TEST(Words, ARankOnNearlyAllLinesIsTheOwner) {
  std::string text = "[10:00:00] VRAM 0.5 GB\nGPU 2 was found\nGPU 0 was found\n";
  for (int i = 0; i < 8; ++i)
    for (int rank = 0; rank < 4; ++rank)
      text += fmt::format("[10:0{}:0{} DP{} TP{} EP{}] VRAM used {:.2f} GB\n", i, rank, rank, rank, rank,
                          0.01 * rank + 1 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 4U);
  EXPECT_EQ(r.memory_samples(), 32U);
}

TEST(Words, AnAmountIsNoOwner) {
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += fmt::format("Fra:{} VRAM:{}.82M (Peak {}.37M) | Compositing\n", i, 70 + i % 7, i < 15 ? 95 : 114);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 1U);
}

TEST(Words, AGpuThatIsMentionedIsNoHeading) {
  std::string text = "found GPU 0 and nothing else\nsetting up GPU 3\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("10:00:{:02} VRAM used {} MiB\n", i, 1000 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(20));
}

TEST(Words, LinesOfOneProgramAreNotOfOneTimeUnlessTheirTimesAreTheSame) {
  std::string text;
  for (int request = 0; request < 6; ++request)
    for (int i = 0; i < 5 + request % 2; ++i)
      text += fmt::format("2026-04-10 03:5{}:07,{:03} [VRAM] During generation (loop#{}): 2.{} GB\n", request,
                          100 + 40 * i, i, 80 + request);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 1U);
  EXPECT_THAT(r.device("0"), SizeIs(33));
}

TEST(Words, ATimeOfDayLongBeforeTheLastOneIsOfTheNextDay) {
  std::string text;
  for (const std::string_view time : {"20:06:22", "20:15:06", "21:32:20", "10:14:10", "10:40:00", "11:00:01"})
    text += fmt::format("[{}] VRAM used: 1889.14MB\n", time);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(6));
  EXPECT_EQ(r.device("0")[3].first - r.device("0")[2].first,
            24 * 3600 - (21 * 3600 + 32 * 60 + 20) + 10 * 3600 + 14 * 60 + 10);
}

TEST(Words, OneLineWithAUnitDoesNotDecideForManyWithout) {
  std::string text = "mem_mb = torch.tensor([mem / (1024 * 1024)], used 1024 MB\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("2026-03-01 10:00:{:02} - Epoch [1][{}/930] memory: {}, loss: 1.1\n", i, i, 3050 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(30));
}

TEST(Words, MemoryThatNoLineSaysToBeAGpusMayBeTheHosts) {
  std::string text;
  std::string of_gpu;
  for (int i = 0; i < 6; ++i) {
    text += fmt::format("10:00:{:02} Memory before: {} MB\n", i, 300 + i);
    of_gpu += fmt::format("10:00:{:02} GPU memory before: {} MB\n", i, 300 + i);
  }
  EXPECT_THAT(read_text(text).warnings(), HasSubstr("no line says that its memory is a GPU's"));
  EXPECT_THAT(read_text(of_gpu).warnings(), Not(HasSubstr("no line says")));
}

TEST(Words, ATimeThatIsMentionedOnceIsNoClock) {
  std::string text = "startup time: 2026-08-09 18:03:53\n";
  for (int i = 0; i < 16; ++i) text += fmt::format("VRAM used after render: {} MB\n", 7000 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(16));
  EXPECT_NE(r.device("0")[0].first, r.device("0")[1].first);
  EXPECT_THAT(r.warnings(), HasSubstr("are no clock: the readings are counted"));
}

TEST(Words, RefusesWhereTwoReadingsAreEquallyLikely) {
  std::string one_line;
  std::string in_turn;
  for (int i = 0; i < 20; ++i) {
    one_line += fmt::format("10:00:{:02} torch memory used: {} MB, driver memory used: {} MB\n", i, 100 + i, 500);
    in_turn += fmt::format("10:00:{:02} torch used: {} MB\n10:00:{:02} driver used: {} MB\n", i, 100 + i, i, 500);
  }
  EXPECT_THAT(read_text(one_line).error,
              AllOf(HasSubstr("line 1"), HasSubstr("several figures"), HasSubstr("--line-pattern")));
  EXPECT_THAT(read_text(in_turn).error, AllOf(HasSubstr("alternate"), HasSubstr("--line-pattern")));
}

TEST(Words, ALoadThatComesRoundIsOneGpu) {
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += fmt::format("10:{:02}:{:02} VRAM used: {} MiB\n", i / 60, i % 60, 5000 + i % 9 * 10);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(200));
}

TEST(Words, HowManyGpusThereAreNamesNone) {
  std::string text;
  for (int i = 0; i < 24; ++i) {
    text += fmt::format("tick {}  sec/tick 151.7  cpumem 3.15  gpumem {:.2f}\n", i, 6.3 + 0.01 * (i % 3));
    text += "{\"metric\": \"fid50k\", \"num_gpus\": 1, \"total_time\": 541.9}\n";
  }
  const auto r = logtest::read_text(text);
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").size(), 24U);
  EXPECT_EQ(r.series(), 1U);
}

TEST(Words, AColumnThatNumbersChipsNamesThem) {
  const auto r = logtest::read_text(
      "HBM usage of all chips\n\n| Chip | HBM Usage (GiB)       | Duty cycle "
      "|\n|------|-----------------------|--------"
      "----|\n| 0    | 18.45 GiB / 31.25 GiB |    100.00% |\n| 1    | 10.40 GiB / 31.25 GiB |    100.00% |\n| 2    | "
      "10.40 GiB / 31.25 GiB |    100.00% |\n| 3    | 10.40 GiB / 31.25 GiB |    100.00% |\n");
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 4U);
  EXPECT_EQ(r.device("0").size(), 1U);
  EXPECT_EQ(r.device("3").size(), 1U);
}

TEST(Words, EveryRefusalNamesTheLineAndTheOption) {
  for (const std::string_view text : {"hello, world\nhow, are you, today\n", "epoch 1: loss 0.5\nepoch 2: loss 0.4\n",
                                      "memory total: 24 GB\nmemory total: 24 GB\n"}) {
    const std::string error = read_text(text).error;
    EXPECT_THAT(error, AllOf(HasSubstr("'"), HasSubstr("--line-pattern"), Not(HasSubstr("0 columns")))) << text;
  }
}

TEST(Merged, AreToldByTheirTimes) {
  std::vector<double> times;
  std::vector<double> merged;
  std::vector<double> jumping;
  std::vector<double> even;
  for (int i = 0; i < 100; ++i) {
    times.push_back(i / 2 * 10 + (i % 2) * 3);
    even.push_back(i * 5);
    merged.push_back(i % 2 == 0 ? 5000 + i : 300);
    jumping.push_back(i * 7919 % 13 < 6 ? 5000 : 300);
  }
  EXPECT_TRUE(are_merged(times, merged));
  EXPECT_FALSE(are_merged(even, jumping));
  EXPECT_FALSE(are_merged(even, merged)) << "count_interleaved() sees these";
  EXPECT_EQ(count_interleaved(merged), 2U);
}

}  // namespace
}  // namespace vramtrack

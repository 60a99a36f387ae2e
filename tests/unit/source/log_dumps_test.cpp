// Logs of other tools: the nvidia-smi table, dmon, pmon, tegrastats, gpustat.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"

namespace vramtrack {
namespace {

using logtest::fixture;
using logtest::kReading_s;
using logtest::read_logs;
using logtest::read_text;
using logtest::utc;
using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

TEST(Table, ReadsGpusAndProcesses) {
  const auto r = read_logs({fixture("table_linux.log")});
  EXPECT_THAT(r.formats, ElementsAre("table"));
  const double t = 1'772'339'252;  // 2026-03-01T04:27:32Z; the abbreviation in the line before is not read
  const std::string gpu = "00000000:1d:00.0";
  EXPECT_THAT(r.device(gpu), ElementsAre(Pair(t, 3001), Pair(t + 10, 2600), Pair(t + 20, 5)));
  EXPECT_EQ(r.catalog->device(gpu)->capacity_bytes, 49140ULL << 20);
  EXPECT_EQ(r.catalog->device(gpu)->name, "NVIDIA RTX A6000");
  // N/A is a missing value, not zero.
  EXPECT_THAT(r.device("00000000:1e:00.0"), SizeIs(0));
  EXPECT_THAT(r.of(Metric::process_used, gpu, 7002, 0), ElementsAre(Pair(t, 2384)));
  EXPECT_THAT(r.of(Metric::process_used, gpu, 7002, 1), ElementsAre(Pair(t + 10, 2500)));
  EXPECT_EQ(r.catalog->process(7003, 0)->command, "...a name/with spaces");
  EXPECT_EQ(r.catalog->process(7003, 0)->kind, "C+G");
  ASSERT_THAT(r.events, SizeIs(4));
  EXPECT_EQ(r.events[0].pid, 7002U);
  EXPECT_EQ(r.events[0].pid_start_ticks, 0U);
  EXPECT_DOUBLE_EQ(seconds_between(Timestamp{}, r.events[0].time), t + 10);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Table, ReadsTheLayoutOfOldDrivers) {
  const auto r = read_logs({fixture("table_418.log")});
  EXPECT_THAT(r.of(Metric::process_used, "00000000:06:00.0", 12345), ElementsAre(testing::_, Pair(testing::_, 1233)));
  EXPECT_THAT(r.device("00000000:07:00.0"), SizeIs(2));
  EXPECT_THAT(r.events, SizeIs(0));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Table, ReadsMigDevicesAndTheirProcesses) {
  const auto r = read_logs({fixture("table_mig.log")});
  EXPECT_EQ(r.device("00000000:36:00.0/gi1/ci0")[0].second, 1000);
  EXPECT_EQ(r.device("00000000:36:00.0/gi2/ci0")[0].second, 11);
  EXPECT_EQ(r.catalog->device("00000000:36:00.0/gi1/ci0")->parent_id, "00000000:36:00.0");
  EXPECT_EQ(r.of(Metric::process_used, "00000000:36:00.0/gi1/ci0", 8123)[0].second, 981);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Table, ReadsWhatNvitopPrintsOnce) {
  const auto r = read_logs({fixture("nvitop.log")});
  EXPECT_THAT(r.formats, ElementsAre("table"));
  const double t = 1'739'965'477;  // 2025-02-19T11:44:37Z
  const std::string gpu = "00000000:3a:00.0";
  EXPECT_THAT(r.device(gpu), ElementsAre(Pair(t, DoubleNear(41.05 * 1024, 0.01)), Pair(t + 30, 42 * 1024)));
  EXPECT_EQ(r.catalog->device(gpu)->name, "H800");
  EXPECT_THAT(r.device("00000000:18:00.0"), ElementsAre(Pair(t, 3.5), Pair(t + 30, 3.5)));
  EXPECT_THAT(r.of(Metric::process_used, gpu, 771034, 0), ElementsAre(Pair(t, DoubleNear(41.03 * 1024, 0.01))));
  EXPECT_EQ(r.catalog->process(771034, 0)->command, "python3 -m sglang.launch_server --model q..");
  EXPECT_EQ(r.catalog->process(771034, 0)->user, "root");
  EXPECT_THAT(r.raw(Metric::process_age, gpu), ElementsAre(22 * 60 + 10)) << "22:10";
  ASSERT_THAT(r.events, SizeIs(1)) << "the second listing does not have it";
  EXPECT_EQ(r.events[0].pid, 771034U);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Table, SaysThatWindowsHidesProcessMemory) {
  const auto r = read_logs({fixture("table_windows.log")});
  EXPECT_EQ(r.series(), 1U);
  EXPECT_EQ(r.catalog->process(25992, 0)->name, "ollama.exe");
  EXPECT_THAT(r.warnings(), HasSubstr("N/A for the memory of processes"));
  EXPECT_THAT(r.events, SizeIs(0));
}

TEST(Table, NamesATruncatedDump) {
  std::ifstream file(fixture("table_418.log"));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.resize(text.rfind("|   1  Tesla") + 30);
  const auto r = read_text(text);
  EXPECT_EQ(r.notes.skipped_lines, 1U);
  EXPECT_THAT(r.events, SizeIs(0));
}

TEST(Table, HasItsTimeInAnyOfTheWaysThatOtherToolsHave) {
  std::ifstream file(fixture("table_418.log"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const std::string form : {"{}", "==== {} ====", "started for test 3, {}", "seconds"}) {
    std::string dumps = text;
    for (int second : {0, 10}) {
      const std::string date = fmt::format("Wed Jun 12 09:00:{:02} 2019", second);
      dumps.replace(dumps.find(date), date.size(),
                    form == "seconds" ? std::to_string(1'560'330'000 + second) : fmt::format(fmt::runtime(form), date));
    }
    const auto r = read_text(dumps);
    ASSERT_EQ(r.error, "") << form;
    ASSERT_THAT(r.device("00000000:06:00.0"), SizeIs(2)) << form;
    EXPECT_EQ(r.device("00000000:06:00.0")[1].first, 1'560'330'010) << form;
  }
}

TEST(Dmon, ReadsTheFbColumnByItsHeader) {
  const auto r = read_logs({fixture("dmon.log")});
  EXPECT_THAT(r.formats, ElementsAre("dmon"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1000), Pair(kTen + 1, 1010), Pair(kTen + 2, 1020)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 2000), Pair(kTen + 2, 2020)));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Facts, AreReadFromTheFormatsThatHoldThem) {
  const auto busy_of = [](const std::string& text, const std::string& device = "0") {
    const auto r = read_text(text);
    EXPECT_EQ(r.error, "");
    EXPECT_THAT(r.raw(Metric::device_used, device), Not(SizeIs(0)));
    return r.raw(Metric::device_busy, device);
  };
  EXPECT_THAT(busy_of("# gpu     sm     fb\n# Idx      %     MB\n    0     10   1000\n    0      -   1010\n"),
              ElementsAre(1000U));
  for (const auto& [text, busy] :
       {std::pair("#Entity   GPUTL  FBTTL  FBUSD\nID\nGPU 0  25  40960  500\nGPU 0  N/A  40960  510\n", 2500U),
        std::pair("#Entity   GPUTL  GRACT  FBTTL  FBUSD\nID\nGPU 0  25  0.125  40960  500\n",
                  1250U),  // the finer figure
        std::pair("Sun Mar  1 10:00:00 UTC 2026\n# TYPE DCGM_FI_DEV_FB_USED gauge\n"
                  "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 40\nDCGM_FI_DEV_FB_USED{gpu=\"0\"} 4845\n",
                  4000U)})
    EXPECT_THAT(busy_of(text), ElementsAre(busy)) << text;
  const auto received =
      read_text("#Entity   PCIRX  FBTTL  FBUSD\nID\nGPU 0  2500000  40960  500\nGPU 0  2600000  40960  510\n");
  EXPECT_THAT(received.raw(Metric::device_received, "0"), ElementsAre(2500000U, 2600000U));
  EXPECT_THAT(read_logs({fixture("smi_q.log")}).raw(Metric::device_busy, "GPU-00000000-1111-2222-3333-444444444444"),
              Contains(1000U));
}

TEST(Dmon, AGpuBeyondTheBoundIsSkipped) {
  const auto r =
      read_text("# gpu   fb\n# Idx   MB\n    0   10\n 4095   20\n 4096   30\n 4000000000   40\n   -1   50\n");
  EXPECT_THAT(r.device("0"), SizeIs(1));
  EXPECT_THAT(r.device("4095"), SizeIs(1));
  EXPECT_THAT(r.device("4096"), SizeIs(0));
  EXPECT_EQ(r.notes.skipped_lines, 3U);
}

TEST(Dmon, ARowThatLacksItsLastColumnIsSkipped) {
  const auto memory = read_text("# gpu   fb\n# Idx   MB\n    0   10\n    0\n    0   11\n");
  EXPECT_THAT(memory.device("0"), ElementsAre(Pair(0, 10), Pair(1, 11)));
  EXPECT_THAT(memory.notes.first_skipped, ElementsAre(HasSubstr("'0' has 1 column, and the header has 2")));
  // The row with too few words follows one with enough, and must not inherit the rest of that row.
  const auto clock = read_text("# gpu   fb  Time\n# Idx   MB  HH:MM:SS\n    0   10  10:00:00\n    0   11\n");
  EXPECT_THAT(clock.device("0"), SizeIs(1));
  EXPECT_EQ(clock.notes.skipped_lines, 1U);
}

TEST(Dmon, CountsRoundsWithoutAClock) {
  LogOptions options = utc();
  options.interval_s = 5;
  const auto r = read_text("# gpu   fb\n# Idx   MB\n    0   10\n    1   20\n    0   11\n    1   21\n", options);
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(0, 20), Pair(5, 21)));
  EXPECT_TRUE(r.catalog->clock_is_relative);
}

TEST(Dmon, TakesTheDateOfATimeOfDayFromStart) {
  LogOptions options = utc();
  options.start = Timestamp{std::chrono::seconds{static_cast<std::int64_t>(kTen)}};
  const auto r =
      read_text("#Time      gpu    fb\n#HH:MM:SS  Idx    MB\n 23:59:59    0    10\n 00:00:00    0    11\n", options);
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen + 50'399, 10), Pair(kTen + 50'400, 11)));
}

TEST(Dmon, RowsThatAreNewestFirstAreReadFromTheirEnd) {
  std::string text = "#Date       Time        gpu     fb\n";
  for (int s = 9; s >= 0; --s)
    text += fmt::format(" 20260301   10:00:0{0}      0   {1}\n 20260301   10:00:0{0}      1   7\n", s, 10 + s);
  const auto r = read_text(text);
  EXPECT_EQ(r.error, "");
  EXPECT_TRUE(r.in_order());
  EXPECT_THAT(r.device("0"), SizeIs(10));
  EXPECT_EQ(r.device("0").front(), std::make_pair(kTen, 10.0));
}

TEST(Dmon, AMessageBetweenTheRowsOfOneTimeComesBehindThoseBeforeIt) {
  const auto r = read_text(
      "#Time      gpu    fb\n 10:00:01    0    10\n 10:00:01    1    20\n 10:00:02    0    11\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
      " 10:00:02    1    21\n 10:00:03    0    12\n 10:00:03    1    22\n");
  EXPECT_THAT(r.device("0"), SizeIs(3));
  EXPECT_THAT(r.device("1"), SizeIs(3));
  ASSERT_THAT(r.events, Not(SizeIs(0)));
  EXPECT_EQ(r.events[0].kind, Event::Kind::out_of_memory);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Dmon, SaysHowToRecordTheMemory) {
  EXPECT_THAT(read_text("# gpu   pwr  gtemp\n# Idx     W      C\n    0    61     35\n").error, HasSubstr("-s m"));
}

TEST(SmiXml, ReadsWhatTheTextFormSays) {
  const auto r = read_logs({fixture("smi_q.xml")});
  EXPECT_THAT(r.formats, ElementsAre("smi-xml"));
  const std::string first = "GPU-00000001-1111-2222-3333-444444444444";
  const std::string second = "GPU-00000002-1111-2222-3333-444444444444";
  EXPECT_THAT(r.device(first), ElementsAre(Pair(kTen, 4000), Pair(kTen + 10, 3500)));
  EXPECT_THAT(r.device(second), ElementsAre(Pair(kTen, 900), Pair(kTen + 10, 944)));
  EXPECT_EQ(r.catalog->device(first)->capacity_bytes, 81559ULL << 20);
  EXPECT_EQ(r.catalog->device(first)->name, "NVIDIA H100 80GB HBM3");
  EXPECT_THAT(r.of(Metric::process_used, first, 1234), ElementsAre(Pair(kTen, 3000), Pair(kTen + 10, 3000)));
  EXPECT_THAT(r.of(Metric::process_used, first, 77), ElementsAre(Pair(kTen, 500)));
  EXPECT_EQ(r.catalog->process(77, 0)->command, "R&D <job>");
  ASSERT_THAT(r.events, SizeIs(1));
  EXPECT_EQ(r.events[0].pid, 77U);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(SmiXml, ADocumentThatWasCutDoesNotSpoilTheNext) {
  const auto document = [](int second, std::string_view rest) {
    return fmt::format(
        "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n<timestamp>Sun Mar  1 10:00:0{} 2026</timestamp>\n"
        "<gpu id=\"00000000:01:00.0\">\n<fb_memory_usage>\n<total>40960 MiB</total>\n{}",
        second, rest);
  };
  const std::string_view rest = "<used>4000 MiB</used>\n</fb_memory_usage>\n</gpu>\n</nvidia_smi_log>\n";
  const auto r = read_text(document(0, rest) + document(1, "<used>40") + '\n' + document(2, rest) + document(3, "<us"));
  EXPECT_THAT(r.device("00000000:01:00.0"), ElementsAre(Pair(kTen, 4000), Pair(kTen + 2, 4000)));
}

TEST(SmiXml, SaysThatTheMemoryIsMissing) {
  EXPECT_THAT(read_text("<nvidia_smi_log>\n<gpu id=\"00000000:01:00.0\">\n</gpu>\n</nvidia_smi_log>\n").error,
              HasSubstr("does not have the memory"));
}

TEST(Pmon, ReadsProcessesAndTheirEnds) {
  const auto r = read_logs({fixture("pmon.log")});
  EXPECT_THAT(r.formats, ElementsAre("pmon"));
  EXPECT_THAT(r.of(Metric::process_used, "0", 4001), ElementsAre(Pair(0, 600), Pair(1, 610)));
  EXPECT_THAT(r.of(Metric::process_used, "1", 4003), ElementsAre(Pair(1, 100), Pair(2, 110), Pair(3, 120)));
  EXPECT_EQ(r.catalog->process(4003, 0)->command, "my worker");
  ASSERT_THAT(r.events, SizeIs(1));
  EXPECT_EQ(r.events[0].pid, 4001U);
  EXPECT_THAT(r.warnings(), HasSubstr("--interval"));
}

TEST(Tegrastats, ReadsWithAndWithoutAClock) {
  const auto r = read_logs({fixture("tegrastats.log")});
  EXPECT_THAT(r.formats, ElementsAre("tegrastats"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 2633), Pair(kTen + 1, 2640), Pair(kTen + 2, 2650)));
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 7850ULL << 20);
  const auto bare =
      read_text("RAM 100/7850MB (lfb 1x2MB) CPU [0%@1]\nRAM 101/7850MB (lfb 1x2MB) CPU [0%@1]\nRAM 102/78");
  EXPECT_THAT(bare.device("0"), ElementsAre(Pair(0, 100), Pair(kReading_s, 101)));
  EXPECT_EQ(bare.notes.skipped_lines, 1U);
}

TEST(Gpustat, ReadsPrettyAndPlainObjects) {
  const auto r = read_logs({fixture("gpustat.json")});
  EXPECT_THAT(r.formats, ElementsAre("gpustat"));
  const std::string gpu = "GPU-aaaaaaaa-0000-0000-0000-000000000000";
  EXPECT_THAT(r.device(gpu), ElementsAre(Pair(kTen + 0.25, 1000), Pair(kTen + 1.25, 1010), Pair(kTen + 2.25, 400)));
  EXPECT_THAT(r.of(Metric::process_used, gpu, 4001), SizeIs(2));
  EXPECT_THAT(r.of(Metric::process_used, gpu, 4002), SizeIs(0));
  EXPECT_EQ(r.catalog->process(4001, 0)->command, "python train.py {\"a\": 1}");
  EXPECT_EQ(r.catalog->process(4002, 0)->user, "bob");
  ASSERT_THAT(r.events, SizeIs(1));
  EXPECT_EQ(r.events[0].pid, 4001U);
}

TEST(Gpustat, CountsBrokenObjectsAndJunk) {
  const auto r = read_text(
      "{\"query_time\": \"2026-03-01T10:00:00\", \"gpus\": [{\"index\": 0, \"memory.used\": 5}]}\n"
      "Error: driver\n{\"gpus\": 5}\n{\"query_time\": \"2026-03-01T10:00:01\", \"gpus\": [");
  EXPECT_THAT(r.samples, SizeIs(1));
  EXPECT_EQ(r.notes.skipped_lines, 3U);
}

}  // namespace
}  // namespace vramtrack

// Files as found in practice: compressed, recoded, damaged; the order of time; joining process and device logs.
#include <gmock/gmock.h>

#include "../packed.hpp"
#include "log_testing.hpp"

namespace vramtrack {
namespace {

using logtest::Files;
using logtest::fixture;
using logtest::read_logs;
using logtest::read_text;
using logtest::utc;
using packed::gzip;
using packed::zstd;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z
const std::string kLog =
    "timestamp, index, memory.used [MiB]\n2026/03/01 10:00:00, 0, 1 MiB\n2026/03/01 10:00:01, 0, 2 MiB\n";

std::string utf16(const std::string& text, bool mark) {
  std::string out = mark ? "\xff\xfe" : "";
  for (const char c : text) {
    out += c;
    out += '\0';
  }
  return out;
}

TEST(LogInput, UnpacksByContentNotByName) {
  EXPECT_THAT(read_text(gzip(kLog)).samples, SizeIs(2));
  EXPECT_THAT(read_text(zstd(kLog)).samples, SizeIs(2));
  EXPECT_THAT(read_text(gzip(kLog.substr(0, 40)) + gzip(kLog.substr(40))).samples, SizeIs(2));
  EXPECT_THAT(read_text(zstd(kLog.substr(0, 40)) + zstd(kLog.substr(40))).samples, SizeIs(2));
}

TEST(LogInput, ReadsWhatIsLeftOfABrokenArchive) {
  std::string text = kLog;
  for (int i = 0; i < 20'000; ++i)
    text += "2026/03/01 11:00:00." + std::to_string(i * 7919 % 900 + 100) + ", 0, " + std::to_string(i * 31 % 7907) +
            " MiB\n";
  for (std::string packed : {gzip(text), zstd(text)}) {
    packed.resize(packed.size() * 9 / 10);
    const auto r = read_text(packed);
    EXPECT_EQ(r.error, "");
    EXPECT_THAT(r.warnings(), HasSubstr("is cut off after"));
    EXPECT_GT(r.samples.size(), 2U);
  }
}

TEST(LogInput, DecodesWhatWindowsWrites) {
  std::string crlf;
  for (const char c : kLog) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_THAT(read_text(crlf).samples, SizeIs(2));
  EXPECT_THAT(read_text("\xef\xbb\xbf" + crlf).samples, SizeIs(2));
  EXPECT_THAT(read_text(utf16(crlf, true)).samples, SizeIs(2));
  EXPECT_THAT(read_text(utf16(crlf, false)).samples, SizeIs(2));
}

TEST(LogInput, NamesLinesWithNulBytesAndGoesOn) {
  const std::string nuls(40, '\0');
  const auto r =
      read_text(kLog + "2026/03/01 10:0" + nuls + "2026/03/01 10:00:02, 0, 3 MiB\n2026/03/01 10:00:03, 0, 4 MiB\n");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1), Pair(kTen + 1, 2), Pair(kTen + 2, 3), Pair(kTen + 3, 4)));
  EXPECT_EQ(r.notes.skipped_lines, 2U);
  EXPECT_THAT(r.notes.first_skipped[1], HasSubstr(":4: 40 NUL bytes"));
}

TEST(LogInput, TextWithManyNulBytesIsText) {
  const std::size_t behind_header = kLog.find('\n');
  const std::string nuls(40'000, '\0');
  const auto r = read_text(kLog.substr(0, behind_header) + nuls + kLog.substr(behind_header + 1) + nuls);
  EXPECT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1), Pair(kTen + 1, 2)));
}

TEST(LogInput, DropsALineOfMoreThanAMegabyte) {
  const auto r = read_text(kLog + std::string(1'300'000, 'x') + "\n2026/03/01 10:00:02, 0, 3 MiB\n");
  EXPECT_THAT(r.samples, SizeIs(3));
  EXPECT_THAT(r.notes.first_skipped, ElementsAre(HasSubstr(":4: a line of more than 1 MiB")));
}

TEST(LogInput, RefusesEmptyBinaryAndAbsentFiles) {
  EXPECT_THAT(read_text("").error, HasSubstr("empty"));
  EXPECT_THAT(read_text("  \n\n").error, HasSubstr("empty"));
  std::string binary;
  for (int i = 0; i < 4000; ++i) binary += static_cast<char>(i * 37 % 251);
  EXPECT_THAT(read_text("\x7f" + binary).error, HasSubstr("binary"));
  EXPECT_THAT(read_text("\x80\x04\x95" + binary).error, HasSubstr("binary"));
  EXPECT_THAT(read_text("BZh91AY").error, HasSubstr("decompress it first"));
  EXPECT_THAT(read_logs({"/nonexistent/log.csv"}).error, HasSubstr("/nonexistent/log.csv: No such file"));
  EXPECT_THAT(read_logs({"/"}).error, HasSubstr("directory"));
}

TEST(LogInput, LinesAreNumberedAcrossStretches) {
  std::string text = "timestamp, index, memory.used [MiB]\n";
  for (int i = 0; i < 30'000; ++i) text += i == 29'000 ? "broken\n" : "2026/03/01 10:00:00.000, 0, 5 MiB\n";
  EXPECT_THAT(read_text(text).notes.first_skipped, ElementsAre(HasSubstr(":29002: ")));
}

TEST(LogTime, ReadsLocalTimesInTheirZone) {
  LogOptions options;
  options.timezone = "America/New_York";
  EXPECT_EQ(read_text(kLog, options).device("0")[0].first, kTen + 5 * 3600);
  options.timezone = "Mars/Olympus";
  EXPECT_THAT(read_text(kLog, options).error, HasSubstr("Mars/Olympus"));
}

TEST(LogTime, GoesOnWhereAClockWasSetBack) {
  std::string text = kLog;
  for (int s = 2; s < 60; ++s)
    text += "2026/03/01 10:00:" + std::string(s < 10 ? "0" : "") + std::to_string(s) + ", 0, 3 MiB\n";
  const auto r = read_text(text + "2026/03/01 10:00:30, 0, 4 MiB\n2026/03/01 10:00:31, 0, 5 MiB\n");
  ASSERT_THAT(r.device("0"), SizeIs(62));
  EXPECT_THAT(r.device("0")[60], Pair(kTen + 60, 4));
  EXPECT_THAT(r.device("0")[61], Pair(kTen + 61, 5));
  EXPECT_THAT(r.warnings(), HasSubstr("time goes back by 29 s"));
  EXPECT_THAT(r.warnings(), HasSubstr(":62:"));
}

TEST(LogTime, ToleratesJitterSilently) {
  const auto r = read_text(kLog + "2026/03/01 10:00:00.900, 0, 3 MiB\n2026/03/01 10:00:02, 0, 4 MiB\n");
  EXPECT_TRUE(r.in_order());
  EXPECT_THAT(r.samples, SizeIs(4));
  EXPECT_EQ(r.warnings(), "");
}

TEST(LogTime, PutsLooselyInterleavedRowsInOrder) {
  std::string text = "t_s,gpu,used_mib\n";
  for (int i = 0; i < 40'000; ++i) {
    text += std::to_string(i + 5) + ",a,1\n";
    text += std::to_string(i) + ",b,2\n";
  }
  const auto r = read_text(text);
  EXPECT_THAT(r.samples, SizeIs(80'000));
  EXPECT_TRUE(r.in_order());
}

TEST(Joining, JoinsProcessesToDevicesByUuidInOrderOfTime) {
  const auto r = read_logs({fixture("compute_apps.csv"), fixture("query_gpu.csv")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.files, ElementsAre(HasSubstr("query_gpu.csv"), HasSubstr("compute_apps.csv")));
  EXPECT_EQ(r.memory_samples(), 9U);
  EXPECT_TRUE(r.in_order());
  EXPECT_EQ(r.catalog->devices().size(), 2U);
}

TEST(Joining, JoinsByPciAndTakesOverTheUuid) {
  Files files;
  const auto device = files.write(
      "d.csv", "timestamp, index, pci.bus_id, memory.used [MiB]\n2026/03/01 10:00:00, 3, 00000000:0A:00.0, 5 MiB\n");
  const auto process = files.write("p.csv",
                                   "timestamp, gpu_uuid, gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\n"
                                   "2026/03/01 10:00:00, GPU-x, 00000000:0A:00.0, 7, python, 4 MiB\n");
  const auto r = read_logs({device, process});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("GPU-x"), SizeIs(1));
  EXPECT_THAT(r.of(Metric::process_used, "GPU-x", 7), SizeIs(1));
  EXPECT_EQ(r.catalog->device("GPU-x")->index, 3);
}

TEST(Joining, JoinsPmonToDmonByIndex) {
  Files files;
  const auto device = files.write("dmon.log", "# gpu  fb\n# Idx  MB\n  0  700\n  0  710\n  0  720\n");
  const auto r = read_logs({device, fixture("pmon.log")});
  EXPECT_EQ(r.error, "");
  EXPECT_TRUE(r.in_order());
  EXPECT_THAT(r.device("0"), SizeIs(3));
}

TEST(Joining, JoinsTheOneGpuOfEachWhateverItIsCalled) {
  Files files;
  const auto device = files.write("d.csv", kLog);
  const auto process =
      files.write("p.csv", "timestamp, gpu_uuid, pid, used_gpu_memory [MiB]\n2026/03/01 10:00:00, GPU-x, 7, 4 MiB\n");
  const auto r = read_logs({device, process});
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.catalog->devices().size(), 1U);
  EXPECT_THAT(r.of(Metric::process_used, "GPU-x", 7), SizeIs(1));
  EXPECT_THAT(r.device("GPU-x"), SizeIs(2));
}

TEST(Joining, ProcessesWithoutAGpuBelongToTheOnlyOne) {
  Files files;
  const std::string header = "timestamp, pid, process_name, used_gpu_memory [MiB]\n";
  const auto process = files.write("p.csv", header +
                                                "2026/03/01 10:00:00, 7, a, 4 MiB\n2026/03/01 10:00:00, 8, b, 5 MiB\n"
                                                "2026/03/01 10:00:01, 7, a, 6 MiB\n");
  const auto uuid = files.write("u.csv", "timestamp, uuid, memory.used [MiB]\n2026/03/01 10:00:00, GPU-x, 9 MiB\n");
  const auto nameless = files.write("n.csv", "timestamp, memory.used [MiB]\n2026/03/01 10:00:00, 9 MiB\n");
  for (const auto& [device, id] : {std::pair{files.write("d.csv", kLog), "0"}, {uuid, "GPU-x"}, {nameless, "0"}}) {
    const auto r = read_logs({device, process});
    ASSERT_EQ(r.error, "") << device;
    EXPECT_EQ(r.catalog->devices().size(), 1U) << device;
    EXPECT_THAT(r.of(Metric::process_used, id, 7), SizeIs(2)) << device;
    EXPECT_THAT(r.of(Metric::process_used, id, 8), SizeIs(1)) << device;
  }
  EXPECT_EQ(read_logs({process}).catalog->devices().size(), 1U);
  // With several GPUs, it cannot be decided.
  const auto two = files.write("two.csv",
                               "timestamp, index, memory.used [MiB]\n2026/03/01 10:00:00, 0, 1 MiB\n"
                               "2026/03/01 10:00:00, 1, 1 MiB\n");
  EXPECT_THAT(read_logs({two, process}).error, HasSubstr("two.csv (GPU 0 and 1 more) and "));
  EXPECT_THAT(read_logs({two, process}).error, HasSubstr("p.csv (no GPU named)"));
}

TEST(Joining, AProcessLogWithNothingButItsHeaderSaysThatNobodyWasVisible) {
  Files files;
  const auto device = files.write("d.csv", kLog);
  for (const char* const columns : {"timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n",
                                    "timestamp, pid, process_name, used_gpu_memory [MiB]\n"}) {
    const auto nobody = files.write("p.csv", columns);
    for (const auto& given : {std::vector{device, nobody}, {nobody, device}}) {
      const auto r = read_logs(given);
      ASSERT_EQ(r.error, "");
      EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1), Pair(kTen + 1, 2)));
      EXPECT_FALSE(r.catalog->clock_is_relative);
      EXPECT_THAT(r.notes.warnings, ElementsAre(testing::StartsWith(nobody + ": no processes were visible")));
    }
    const auto alone = read_logs({nobody});
    EXPECT_THAT(alone.samples, SizeIs(0));
    EXPECT_THAT(alone.notes.warnings, ElementsAre(testing::StartsWith("no processes were visible")));
  }
}

TEST(Joining, AProcessLogWithNothingInItSaysSo) {
  Files files;
  const auto device = files.write("d.csv", kLog);
  for (const char* const text :
       {"", "\n\n", "No running processes found\n", "No running processes found\nNo running processes found\n"}) {
    const auto nobody = files.write("p.csv", text);
    for (const auto& given : {std::vector{device, nobody}, {nobody, device}}) {
      const auto r = read_logs(given);
      ASSERT_EQ(r.error, "") << text;
      EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1), Pair(kTen + 1, 2)));
      EXPECT_FALSE(r.catalog->clock_is_relative);
      EXPECT_THAT(r.notes.warnings, ElementsAre(testing::StartsWith(nobody + ": no processes were visible"))) << text;
    }
  }
  const auto empty = files.write("p.csv", "");
  EXPECT_THAT(read_logs({empty}).error, HasSubstr("is empty; "));
  EXPECT_THAT(read_logs({empty, files.write("q.csv", "\n")}).error, HasSubstr("is empty; "));
}

TEST(Joining, ProcessesWithoutTheirMemoryAreCounted) {
  Files files;
  const auto device = files.write("d.csv", kLog);
  const auto processes = files.write("p.csv",
                                     "timestamp, pid, process_name, used_gpu_memory [MiB]\n"
                                     "2026/03/01 10:00:00, 7, a, [N/A]\n2026/03/01 10:00:00, 8, b, [N/A]\n"
                                     "2026/03/01 10:00:01, 7, a, [N/A]\n2026/03/01 10:00:01, 8, b, 5 MiB\n");
  EXPECT_THAT(read_logs({device, processes}).notes.warnings,
              ElementsAre(HasSubstr("memory of 1 process was not available ([N/A])")));
}

TEST(Joining, AnAmbiguousJoinNamesBothFiles) {
  Files files;
  const auto a = files.write("a.csv", kLog);
  const auto b = files.write("b.csv", kLog);
  const auto dmon = files.write("dmon.log", "# gpu  fb\n# Idx  MB\n  0  700\n");
  const auto r = read_logs({a, b, fixture("pmon.log")}, [] {
    LogOptions options = utc();
    options.start = Timestamp{};
    return options;
  }());
  EXPECT_THAT(r.error, HasSubstr("a.csv"));
  EXPECT_THAT(r.error, HasSubstr("b.csv"));
  // Two GPUs on one side, and no common kind of name.
  const auto two = files.write(
      "two.csv", "timestamp, index, memory.used [MiB]\n2026/03/01 10:00:00, 0, 1 MiB\n2026/03/01 10:00:00, 1, 1 MiB\n");
  const auto unnamed = read_logs({two, fixture("compute_apps.csv")});
  EXPECT_THAT(unnamed.error, HasSubstr("two.csv"));
  EXPECT_THAT(unnamed.error, HasSubstr("compute_apps.csv"));
  // Only one side has a clock.
  EXPECT_THAT(read_logs({a, fixture("pmon.log")}).error, HasSubstr("--start"));
  EXPECT_EQ(read_logs({dmon, fixture("pmon.log")}).error, "");
}

TEST(Joining, WarningsNameTheirFile) {
  Files files;
  const auto dmon = files.write("dmon.log", "# gpu  fb\n# Idx  MB\n  0  700\n");
  const auto r = read_logs({dmon, fixture("pmon.log")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.notes.warnings, ElementsAre(testing::StartsWith(dmon + ": the log has no clock"),
                                            testing::StartsWith(fixture("pmon.log") + ": the log has no clock")));
  // A single file is never ambiguous.
  EXPECT_THAT(read_logs({dmon}).notes.warnings, ElementsAre(testing::StartsWith("the log has no clock")));
}

TEST(Joining, OneLogAGpuIsJoinedThroughTheProcesses) {
  Files files;
  const auto zero = files.write(
      "0.csv",
      "timestamp, uuid, memory.used [MiB]\n2026/03/01 10:00:00, GPU-aaaaaaaa-0000-0000-0000-000000000000, 1 MiB\n");
  const auto one = files.write(
      "1.csv",
      "timestamp, uuid, memory.used [MiB]\n2026/03/01 10:00:00, GPU-bbbbbbbb-0000-0000-0000-000000000001, 1 MiB\n");
  EXPECT_THAT(read_logs({zero, one, fixture("compute_apps.csv")}).files, SizeIs(3));
}

TEST(Joining, OtherFilesStayIndependent) {
  Files files;
  const auto other =
      files.write("other.csv", "timestamp, uuid, memory.used [MiB]\n2026/03/01 10:00:00, GPU-other, 1 MiB\n");
  auto plan =
      plan_recordings({other, fixture("compute_apps.csv"), fixture("tegrastats.log"), fixture("query_gpu.csv")}, utc());
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_THAT(*plan, SizeIs(3));
  EXPECT_THAT((*plan)[0].files(), ElementsAre(other));
  EXPECT_THAT((*plan)[1].files(), ElementsAre(HasSubstr("query_gpu.csv"), HasSubstr("compute_apps.csv")));
  EXPECT_THAT((*plan)[2].files(), ElementsAre(HasSubstr("tegrastats.log")));
}

TEST(LogFormats, AreListedAndFoundByName) {
  EXPECT_GE(log_formats().size(), 8U);
  for (const LogFormatInfo* format : log_formats()) EXPECT_EQ(find_log_format(format->name), format);
  EXPECT_EQ(find_log_format("query_gpu"), find_log_format("query-gpu"));
  EXPECT_EQ(find_log_format("nothing"), nullptr);
}

}  // namespace
}  // namespace vramtrack

// The snapshots of nvtop -s, as printed by each version.
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
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

TEST(Nvtop, ReadsThePercentageOfOldVersions) {
  const auto r = read_logs({fixture("nvtop_3.2.log")});
  EXPECT_THAT(r.formats, ElementsAre("nvtop"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 4 * 1024))) << "null is missing, not zero";
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 28 * 1024), Pair(kTen + 5, 31 * 1024)));
  EXPECT_EQ(r.catalog->device("1")->name, "AMD Radeon RX 7900 XTX");
  EXPECT_EQ(r.catalog->scale.unit, AmountUnit::percent);
  EXPECT_EQ(r.notes.skipped_lines, 0U);

  LogOptions sized = utc();
  sized.capacity_bytes = 24ULL << 30;
  const auto of_size = read_logs({fixture("nvtop_3.2.log")}, sized);
  EXPECT_THAT(of_size.device("1"),
              ElementsAre(Pair(kTen, DoubleNear(0.28 * 24576, 0.01)), Pair(kTen + 5, DoubleNear(0.31 * 24576, 0.01))));
  EXPECT_TRUE(of_size.catalog->scale.counts_bytes());
}

TEST(Nvtop, ReadsBytesWhereTheCommasAreForgotten) {
  const auto r = read_logs({fixture("nvtop_3.3.0.log")});
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 7234), Pair(kTen + 10, DoubleNear(8086.1, 0.1))));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen + 10, 1024)))
      << "two cards of one name are told apart by their place";
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 21'197'180'928ULL);
  EXPECT_TRUE(r.catalog->scale.counts_bytes());
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Nvtop, ReadsProcessesAndTheirEnds) {
  const auto r = read_logs({fixture("nvtop.log")});
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 2048), Pair(kTen + 5, DoubleNear(34.59, 0.01))));
  EXPECT_THAT(r.of(Metric::process_used, "0", 3443353), ElementsAre(Pair(kTen, 2000)));
  EXPECT_EQ(r.catalog->process(3443353, 0)->command, "python train.py --note \"a {brace}\"");
  EXPECT_THAT(r.of(Metric::process_used, "0", 3443673), IsEmpty());
  ASSERT_THAT(r.events, SizeIs(1)) << "the second snapshot does not have it";
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Nvtop, ReadsItsScreen) {
  const auto r = read_logs({fixture("nvtop_screen.log")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.formats, ElementsAre("nvtop"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 2560), Pair(kTen + 30, 2816)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 21504), Pair(kTen + 30, 21504))) << "side by side with the first";
  EXPECT_EQ(r.catalog->device("1")->name, "NVIDIA L4");
  EXPECT_EQ(r.catalog->device("1")->capacity_bytes, 22ULL << 30);
  EXPECT_THAT(r.of(Metric::process_used, "0", 4242), ElementsAre(Pair(kTen, 2245), Pair(kTen + 30, 2501)));
  EXPECT_EQ(r.catalog->process(4242, 0)->command, "python train.py --config a b");
  EXPECT_THAT(r.of(Metric::process_used, "1", 4711), SizeIs(2));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Nvtop, ReadsALoopWithoutAClockAmongOtherText) {
  // The output of `nvtop -l`, without any time.
  std::string text = "starting {the monitor\n";
  for (const int mib : {100, 110, 120})
    text +=
        "[\n  {\n   \"device_name\": \"A\",\n   \"gpu_clock\": null,\n   \"mem_util\": \"1%\",\n   \"mem_total\": "
        "\"10485760000\",\n"
        "   \"mem_used\": \"" +
        std::to_string(mib * 1048576) +
        "\",\n   \"mem_free\": null\n  }\n]\n"
        "epoch done in [12] steps\n";
  const auto r = read_text(text);
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(0, 100), Pair(kReading_s, 110), Pair(2 * kReading_s, 120)));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Nvtop, NamesASnapshotThatIsCutOff) {
  const auto r = read_text(
      "[\n  {\n   \"device_name\": \"A\",\n   \"gpu_clock\": null,\n   \"mem_util\": \"1%\",\n   \"mem_total\": "
      "\"1048576\",\n"
      "   \"mem_used\": \"1048576\"\n  }\n]\n[\n  {\n   \"device_name\": \"A\",\n   \"gpu_cl");
  EXPECT_THAT(r.device("0"), SizeIs(1));
  EXPECT_EQ(r.notes.skipped_lines, 1U);
}

}  // namespace
}  // namespace vramtrack

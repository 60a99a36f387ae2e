// Tools' screens between the lines of other programs: they are found wherever they are, even if there is only one.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

#include "log_testing.hpp"

namespace vramtrack {
namespace {

using logtest::read_text;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

/// A screen of one GPU with `used_mib` in use, made at 2026-03-01 10:00:00 plus `minute`.
using Screen = std::function<std::string(int minute, int used_mib)>;

std::string nvidia_smi(int minute, int used_mib) {
  return fmt::format(
      "Sun Mar  1 10:{:02}:00 2026       \n"
      "+-----------------------------------------------------------------------------------------+\n"
      "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n"
      "|-----------------------------------------+------------------------+----------------------+\n"
      "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
      "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
      "|=========================================+========================+======================|\n"
      "|   0  NVIDIA A10                     Off |   00000000:00:1E.0 Off |                    0 |\n"
      "|  0%   34C    P0             58W /  150W | {:6}MiB /  23028MiB |      0%      Default |\n"
      "+-----------------------------------------+------------------------+----------------------+\n",
      minute, used_mib);
}

std::string nvitop(int minute, int used_mib) {
  return fmt::format(
      "Sun Mar  1 10:{:02}:00 2026\n"
      "╒═════════════════════════════════════════════════════════════════════════════╕\n"
      "│ NVITOP 1.4.2       Driver Version: 550.90.12      CUDA Driver Version: 12.4 │\n"
      "├───────────────────────────────┬──────────────────────┬──────────────────────┤\n"
      "│ GPU  Name        Persistence-M│ Bus-Id        Disp.A │ MIG M.   Uncorr. ECC │\n"
      "│ Fan  Temp  Perf  Pwr:Usage/Cap│         Memory-Usage │ GPU-Util  Compute M. │\n"
      "╞═══════════════════════════════╪══════════════════════╪══════════════════════╡\n"
      "│   0  A10                 Off  │ 00000000:00:1E.0 Off │ Disabled           0 │\n"
      "│ N/A   36C    P0    85W / 150W │ {:5}MiB / 23028MiB │      0%      Default │\n"
      "╘═══════════════════════════════╧══════════════════════╧══════════════════════╛\n",
      minute, used_mib);
}

std::string rocm_smi(int minute, int used_mib) {
  return fmt::format(
      "Sun Mar  1 10:{:02}:00 UTC 2026\n\n\n"
      "============================ ROCm System Management Interface ============================\n"
      "================================== Memory Usage (Bytes) ==================================\n"
      "GPU[0]\t\t: VRAM Total Memory (B): 24146608128\n"
      "GPU[0]\t\t: VRAM Total Used Memory (B): {}\n"
      "==========================================================================================\n"
      "================================== End of ROCm SMI Log ===================================\n",
      minute, used_mib * 1048576LL);
}

std::string gpustat(int minute, int used_mib) {
  return fmt::format(
      "node7                         Sun Mar  1 10:{:02}:00 2026  550.54.15\n"
      "[0] NVIDIA A10 | 34'C,   0 % | {:5} / 23028 MB | ada:python/4242({}M)\n",
      minute, used_mib, used_mib - 300);
}

/// One of 500 lines of a program that is not a tool, in one of several styles.
using Chatter = std::function<std::string(int line)>;

std::string plain(int i) {
  return fmt::format("step {} | loss {:.4f} | lr 3.00e-04 | {} tokens/s", i, 2.5 / (1 + i), 1900 + i % 70);
}
std::string stamped(int i) {
  return fmt::format("2026-02-28 09:{:02}:{:02},123 INFO trainer: epoch {} of 30 saved to [ckpt/{}]", i / 60 % 60,
                     i % 60, i / 20, i);
}
std::string of_dicts(int i) {
  // The first structure has no end, because a program may print only part of one.
  return i == 0 ? "config = {'hidden': 4096," : fmt::format("{{'loss': {:.3f}, 'epoch': {}}}", 1.5 / (1 + i), i);
}
std::string bracketed(int i) {
  return fmt::format("[{}] rank {} | barrier passed | {} / 500 done", i, i % 8, i);
}

std::string lines(const Chatter& chatter, int from) {
  std::string out;
  for (int i = 0; i < 500; ++i) out += chatter(from + i) + '\n';
  return out;
}

struct Case {
  const char* name;
  const char* format;
  Screen screen;
  std::string device;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{"nvidia-smi", "table", nvidia_smi, "00000000:00:1e.0"},
                                        {"nvitop", "table", nvitop, "00000000:00:1e.0"},
                                        {"rocm-smi", "rocm-smi", rocm_smi, "0"},
                                        {"gpustat", "gpustat-text", gpustat, "0"}};
  return all;
}

TEST(ScreensAmongText, AreFoundBetweenTheLinesOfOtherPrograms) {
  for (const Case& tool : cases())
    for (const Chatter& chatter : {Chatter(plain), Chatter(stamped), Chatter(of_dicts), Chatter(bracketed)}) {
      const std::string text = lines(chatter, 0) + tool.screen(0, 5000) + lines(chatter, 500) + tool.screen(7, 5600) +
                               lines(chatter, 1000) + tool.screen(14, 6200) + lines(chatter, 1500);
      SCOPED_TRACE(std::string(tool.name) + ": " + chatter(1));
      const auto r = read_text(text);
      EXPECT_EQ(r.error, "");
      EXPECT_THAT(r.formats, ElementsAre(tool.format));
      EXPECT_THAT(r.device(tool.device),
                  ElementsAre(Pair(kTen, DoubleNear(5000, 1)), Pair(kTen + 420, DoubleNear(5600, 1)),
                              Pair(kTen + 840, DoubleNear(6200, 1))));
      EXPECT_EQ(r.series(), tool.screen(0, 0).find("4242") == std::string::npos ? 1U : 2U);
      EXPECT_EQ(r.notes.skipped_lines, 0U) << r.warnings();
    }
}

TEST(ScreensAmongText, OneIsEnough) {
  for (const Case& tool : cases())
    for (const Chatter& chatter : {Chatter(plain), Chatter(stamped)}) {
      SCOPED_TRACE(std::string(tool.name) + ": " + chatter(1));
      const auto r = read_text(lines(chatter, 0) + tool.screen(3, 5000) + lines(chatter, 500));
      EXPECT_EQ(r.error, "");
      EXPECT_THAT(r.formats, ElementsAre(tool.format));
      EXPECT_THAT(r.device(tool.device), ElementsAre(Pair(kTen + 180, DoubleNear(5000, 1))));
    }
}

TEST(ScreensAmongText, AreFoundBehindTheHeadOfALongLog) {
  std::string before;
  while (before.size() < 700'000) before += lines(plain, 0);  // formats are recognised by the first 256 KiB
  for (const Case& tool : cases()) {
    SCOPED_TRACE(tool.name);
    const auto r = read_text(before + tool.screen(0, 5000) + lines(plain, 0) + tool.screen(7, 5600));
    EXPECT_EQ(r.error, "");
    EXPECT_THAT(r.formats, ElementsAre(tool.format));
    EXPECT_THAT(r.device(tool.device),
                ElementsAre(Pair(kTen, DoubleNear(5000, 1)), Pair(kTen + 420, DoubleNear(5600, 1))));
  }
  EXPECT_THAT(read_text(before).error, testing::HasSubstr("is not recognised"));
}

TEST(ScreensAmongText, BeforeATableWithManyMoreReadingsTheTableIsRead) {
  std::string table = "index, name, memory.total [MiB], memory.used [MiB]\n";
  for (int i = 0; i < 60; ++i) table += fmt::format("0, NVIDIA A10, 23028 MiB, {} MiB\n", 3000 + i);
  for (const Case& tool : cases()) {
    SCOPED_TRACE(tool.name);
    const auto r = read_text(tool.screen(0, 5000) + table);
    EXPECT_EQ(r.error, "");
    ASSERT_THAT(r.device("0"), SizeIs(60)) << "the time of the screen is not that of the rows";
    EXPECT_NEAR(r.device("0").back().second, 3059, 1);
    EXPECT_EQ(r.device("0").back().first - r.device("0").front().first, 59 * 60);
  }
}

TEST(ScreensAmongText, FewerThanTheReadingsAroundThemAreLeftToThose) {
  std::string figures;
  for (int i = 0; i < 60; ++i)
    figures += fmt::format("2026-03-01 11:{:02}:00 INFO GPU memory used: {} MiB\n", i, 3000 + i);
  for (const Case& tool : cases()) {
    SCOPED_TRACE(tool.name);
    const auto r = read_text(tool.screen(0, 5000) + figures);
    ASSERT_EQ(r.error, "");
    EXPECT_THAT(r.formats, ElementsAre("text"));
    EXPECT_GE(r.device("0").size(), 60U);
    // Enough screens for a verdict show everything on the GPU.
    std::string screens;
    for (int i = 0; i < 20; ++i) screens += tool.screen(i, 5000 + i);
    EXPECT_THAT(read_text(screens + figures).formats, ElementsAre(tool.format));
  }
}

TEST(ScreensAmongText, OneOfNpuSmiIsLeftToTheReadingsAroundIt) {
  const std::string screen =
      "+------------------------------------------------------------------------------------------------+\n"
      "| npu-smi 24.1.rc2                 Version: 24.1.rc2                                               |\n"
      "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n"
      "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n"
      "| 0     910B3               | OK            | 96.7        32                0    / 0             |\n"
      "| 0                         | 0000:C1:00.0  | 0           0    / 0          3416 / 65536         |\n"
      "+------------------------------------------------------------------------------------------------+\n";
  EXPECT_THAT(read_text("2026-03-01 10:00:00\n" + screen).formats, ElementsAre("npu-smi"));
  std::string figures;
  for (int i = 0; i < 15; ++i)
    figures += fmt::format("2026-03-01 11:{:02}:00 INFO NPU memory used: {} MiB\n", i, 3000 + i);
  const auto r = read_text(screen + figures);
  EXPECT_THAT(r.formats, ElementsAre("text"));
  EXPECT_GE(r.device("0").size(), 15U);
}

TEST(ScreensAmongText, WithoutTheirOwnTimeTheyHaveThatOfTheLinesBefore) {
  std::string screen = gpustat(0, 5000);
  screen.erase(0, screen.find('\n') + 1);  // as with --no-header
  const auto r = read_text(lines(stamped, 0) + screen + lines(stamped, 500));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(1'772'269'200.0 + 499.123, 5000))) << "2026-02-28T09:08:19";
}

}  // namespace
}  // namespace vramtrack

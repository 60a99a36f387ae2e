// Texts that people paste and that show one moment.
#include "explain/pasted.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vramtrack::explain {
namespace {

constexpr std::string_view kSummary =
    "|===========================================================================|\n"
    "|                  PyTorch CUDA memory summary, device ID 1                 |\n"
    "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
    "| Allocated memory      |   14520 MiB|   15012 MiB|     812 GiB|     798 GiB|\n"
    "| GPU reserved memory   |   22108 MiB|   22108 MiB|   22108 MiB|       0 B  |\n";

TEST(Pasted, OneMemorySummaryTellsItsFigures) {
  EXPECT_EQ(pasted(kSummary).what,
            "is one torch.cuda.memory_summary() of device 1: 14.18 GiB are allocated (14.66 GiB at most) and 21.59 GiB "
            "reserved, of which 7.41 GiB are cached");
  EXPECT_EQ(pasted(std::string(kSummary) + std::string(kSummary)).what, "") << "two are readings";
}

TEST(Pasted, ModelsOfOllama) {
  const Pasted list = pasted(
      "NAME          ID            SIZE      PROCESSOR          UNTIL\n"
      "llama3:70b    786f3184aec0  42 GB     48%/52% CPU/GPU    4 minutes from now\n"
      "qwen2.5:7b    845dbda0ea48  6.0 GB    100% GPU           4 minutes from now\n");
  EXPECT_EQ(list.what,
            "is the list of `ollama ps`: models of 48.00 GiB are loaded: llama3:70b (42.00 GiB, 48%/52% CPU/GPU), "
            "qwen2.5:7b (6.00 GiB, 100% GPU)");
  EXPECT_NE(list.next_step.find("did not fit on the GPU"), std::string::npos);
  EXPECT_EQ(pasted("NAME    ID    SIZE    PROCESSOR    UNTIL\n").what,
            "is the list of `ollama ps`, and no model is loaded");
}

TEST(Pasted, ABrowsersTables) {
  EXPECT_EQ(
      pasted("Task\tMemory footprint\tCPU\tProcess ID\tGPU memory\n"
             "Browser\t412,332K\t1.2\t4312\t-\n"
             "Tab: Maps\t688,120K\t12.1\t5532\t512,400K\n"
             "GPU Process\t1,204,556K\t8.3\t4820\t1,892,004K\n")
          .what,
      "is a browser's task manager: its tasks hold 2.29 GiB of GPU memory, the most: GPU Process (1.80 GiB), Tab: "
      "Maps (500.4 MiB)");
  EXPECT_NE(pasted("Graphics Feature Status\n===\n*   Canvas: Hardware accelerated\nDriver Information\n")
                .what.find("no use of memory"),
            std::string::npos);
}

TEST(Pasted, ATableOfDevicesShowsWhatIsFreeAndWhoHoldsTheRest) {
  const Pasted table = pasted(
      "|   0  Tesla P100-SXM2...  Off  | 00000000:05:00.0 Off |                    0 |\n"
      "| N/A   36C    P0    41W / 300W |  12799MiB / 16280MiB |      0%      Default |\n");
  EXPECT_EQ(
      table.what,
      "is a table of nvidia-smi: 12.50 GiB of 15.90 GiB are in use and 3.40 GiB free, and no process is listed that "
      "holds them");
}

TEST(Pasted, BeforeAndAfterIsADifference) {
  const Pasted lines = pasted("Before loading: 512 MiB GPU memory used\nAfter loading: 9216 MiB GPU memory used\n");
  EXPECT_EQ(lines.what, "shows 512.0 MiB before and 9.00 GiB after: 8.50 GiB more");
  EXPECT_TRUE(lines.is_for_logs);
  EXPECT_EQ(pasted("before the step\nafter the step: 9216 MiB GPU memory\n").what, "");
}

TEST(Pasted, OtherTextIsNone) {
  for (const std::string text : {"", "\n", "step 1: 512 MiB\n", "NAME READY STATUS\napp 1/1 Running\n", "|\t|  |\n"})
    EXPECT_EQ(pasted(text).what, "") << text;
  EXPECT_EQ(pasted(std::string(kPastedBytes, ' ') + std::string(kSummary)).what, "");
}

}  // namespace
}  // namespace vramtrack::explain

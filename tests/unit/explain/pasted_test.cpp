// Texts that people paste and that show a single moment.
#include "explain/pasted.hpp"

#include <gtest/gtest.h>

#include <string>

#include "golden.hpp"

namespace vramtrack::explain {
namespace {

constexpr std::string_view kSummary =
    "|===========================================================================|\n"
    "|                  PyTorch CUDA memory summary, device ID 1                 |\n"
    "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
    "| Allocated memory      |   14520 MiB|   15012 MiB|     812 GiB|     798 GiB|\n"
    "| GPU reserved memory   |   22108 MiB|   22108 MiB|   22108 MiB|       0 B  |\n";
constexpr std::string_view kBeforeAndAfter =
    "Before loading: 512 MiB GPU memory used\nAfter loading: 9216 MiB GPU memory used\n";

TEST(Pasted, IsRecognizedInTheWordsOfTheGolden) {
  std::string words;
  for (const std::string_view text :
       {kSummary,
        std::string_view("NAME          ID            SIZE      PROCESSOR          UNTIL\n"
                         "llama3:70b    786f3184aec0  42 GB     48%/52% CPU/GPU    4 minutes from now\n"
                         "qwen2.5:7b    845dbda0ea48  6.0 GB    100% GPU           4 minutes from now\n"),
        std::string_view("NAME    ID    SIZE    PROCESSOR    UNTIL\n"),
        std::string_view("Task\tMemory footprint\tCPU\tProcess ID\tGPU memory\n"
                         "Browser\t412,332K\t1.2\t4312\t-\n"
                         "Tab: Maps\t688,120K\t12.1\t5532\t512,400K\n"
                         "GPU Process\t1,204,556K\t8.3\t4820\t1,892,004K\n"),
        std::string_view("Graphics Feature Status\n===\n*   Canvas: Hardware accelerated\nDriver Information\n"),
        std::string_view("|   0  Tesla P100-SXM2...  Off  | 00000000:05:00.0 Off |                    0 |\n"
                         "| N/A   36C    P0    41W / 300W |  12799MiB / 16280MiB |      0%      Default |\n"),
        kBeforeAndAfter}) {
    const Pasted found = pasted(text);
    EXPECT_NE(found.what, "") << text;
    words += std::string(text) + "=> " + found.what + "\n=> " + found.next_step + "\n\n";
  }
  expect_golden("words/explain/pasted.txt", words);
}

TEST(Pasted, TwoSummariesAreReadings) {
  EXPECT_EQ(pasted(std::string(kSummary) + std::string(kSummary)).what, "");
}

TEST(Pasted, BeforeAndAfterIsADifference) {
  EXPECT_TRUE(pasted(kBeforeAndAfter).is_for_logs);
  const std::string_view one = "before the step\nafter the step: 9216 MiB GPU memory\n";
  EXPECT_EQ(pasted(one).what, "");
}

TEST(Pasted, OtherTextIsNone) {
  for (const std::string text : {"", "\n", "step 1: 512 MiB\n", "NAME READY STATUS\napp 1/1 Running\n", "|\t|  |\n"})
    EXPECT_EQ(pasted(text).what, "") << text;
  EXPECT_EQ(pasted(std::string(kPastedBytes, ' ') + std::string(kSummary)).what, "");
}

}  // namespace
}  // namespace vramtrack::explain

// How often formats read the head of a log before one of them is chosen.
#include <filesystem>
#include <string>

#include "core/zone.hpp"
#include "log_testing.hpp"
#include "source/log/recognise.hpp"

namespace vramtrack {
namespace {

using logtest::fixture;
using logtest::utc;

/// How often the head of `path` is read; 0: it is refused.
std::size_t head_reads(const std::string& path) {
  const auto planned = recognise_log(path, utc(), *Zone::open("UTC"));
  return planned ? (*planned)->head_reads : 0;
}

TEST(Recognition, ReadsTheHeadOfAnyFixtureAtMostTwice) {
  std::size_t files = 0;
  std::size_t once = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(fixture(""))) {
    if (!entry.is_regular_file()) continue;
    const std::size_t reads = head_reads(entry.path().string());
    EXPECT_LE(reads, 2U) << entry.path();
    files += reads > 0 ? 1U : 0U;
    once += reads == 1 ? 1U : 0U;
  }
  EXPECT_GT(files, 40U);
  EXPECT_GE(once * 4, files * 3) << "few heads are of two formats";
}

}  // namespace
}  // namespace vramtrack

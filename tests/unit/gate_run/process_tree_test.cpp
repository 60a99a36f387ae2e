#include "gate/run/process_tree.hpp"

#include <gmock/gmock.h>

#include "core/units.hpp"
#include "paths.hpp"

namespace vramtrack::gate {
namespace {

using ::testing::HasSubstr;

TEST(ProcessTreeMemory, AddsUpWhatTheTreeHoldsOnAllDevices) {
  SourcesConfig config;
  config.enabled = {"drm"};
  config.sys_root = tests_dir() + "/fixtures/sys";
  config.proc_root = tests_dir() + "/fixtures/proc";
  ProcessTreeMemory memory(config);
  const auto one = memory.used_bytes(2001);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(*one, 102 * kMiB) << "100 MiB on one card, 2 MiB on the other";
  EXPECT_EQ(*memory.used_bytes(2002), 700 * kMiB);
  EXPECT_GT(*memory.used_bytes(1), 800 * kMiB) << "init's are all";
  EXPECT_EQ(*memory.used_bytes(77), 0) << "nobody's";
}

TEST(ProcessTreeMemory, WithoutASourceSaysWhyAndWhatToDo) {
  SourcesConfig config;
  config.enabled = {"drm"};
  config.sys_root = "/no-such-folder";
  ProcessTreeMemory memory(config);
  const auto used = memory.used_bytes(1);
  ASSERT_FALSE(used);
  EXPECT_THAT(used.error().message, HasSubstr("no GPU memory can be read here (drm: "));
  EXPECT_THAT(used.error().message, HasSubstr("see 'vramtrack doctor'"));
}

}  // namespace
}  // namespace vramtrack::gate

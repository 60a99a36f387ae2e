#include "explain/platform.hpp"

#include <gtest/gtest.h>

namespace vramtrack::explain {
namespace {

TEST(Platform, ANameOfASystemIsNoPartOfAnotherWord) {
  EXPECT_EQ(system_of("IPAdapterAdvanced: CUDA out of memory on an RTX 3090"), System::any);
  EXPECT_EQ(system_of("Failed to load the model on iPad13,1"), System::phone);
  EXPECT_EQ(system_of("at thread.executor.submit(task)"), System::any);
  EXPECT_EQ(system_of("Adapter: Apple GPU, WebGL2"), System::browser);
  EXPECT_EQ(system_of("C:\\Users\\ada\\train.py"), System::windows);
  EXPECT_EQ(system_of("abc:\\n"), System::any);
}

}  // namespace
}  // namespace vramtrack::explain

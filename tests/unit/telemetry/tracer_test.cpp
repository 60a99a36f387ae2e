#include "telemetry/tracer.hpp"

#include <gtest/gtest.h>

namespace vramtrack::telemetry {
namespace {

TEST(Tracer, KnowsALibraryByTheNamesThatItsFileCanHave) {
  for (const char* const name : {"libcuda.so.1", "libcuda.so.580.65.06", "libcuda.so", "libOpenCL.so.1.0.0",
                                 "libOpenCL-3f4ac1b2.so.1.0.0", "libc10.so", "libvulkan.so.1.3.239"})
    EXPECT_TRUE(is_traced_library(name)) << name;
  for (const char* const name : {"libcudart.so.13", "libcudart-3f4ac1b2.so.13", "libc10_cuda.so", "libOpenCL-test.so",
                                 "libOpenCL", "libOpenCL-3f4a", "ld-linux-x86-64.so.2", ""})
    EXPECT_FALSE(is_traced_library(name)) << name;
  EXPECT_TRUE(is_loader("ld-linux-x86-64.so.2"));
  EXPECT_TRUE(is_loader("ld-musl-x86_64.so.1"));
  EXPECT_FALSE(is_loader("libcuda.so.1"));
}

}  // namespace
}  // namespace vramtrack::telemetry

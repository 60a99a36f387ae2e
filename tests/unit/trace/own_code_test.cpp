// Recognising the user's own code by its location.
#include "trace/own_code.hpp"

#include <gtest/gtest.h>

namespace vramtrack::trace {
namespace {

TEST(OwnCode, AnInterpreterInAnyPlaceIsNotTheUsers) {
  const OwnCode code;
  const std::string pyenv = "/home/me/.pyenv/versions/3.11.7/";
  const std::string build = "/tmp/python-build.20240101/Python-3.11.7/";
  EXPECT_FALSE(code.is_own_native(pyenv + "bin/python3.11", build + "Python/ceval.c"));
  EXPECT_FALSE(code.is_own_native(pyenv + "lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so",
                                  build + "Modules/_ctypes/callproc.c"));
  EXPECT_FALSE(code.is_own_native("/home/me/conda/lib/python3.12/lib-dynload/_ctypes.so", ""));
  EXPECT_FALSE(code.is_own_native("/home/me/conda/lib/libffi.so.8", ""));
  EXPECT_FALSE(code.is_own_native("/home/me/app/server", build + "Objects/call.c")) << "embedded in a program";
  EXPECT_TRUE(code.is_own_native("/home/me/app/server", "/home/me/app/server.c"));
}

TEST(OwnCode, APathThatIsNamedIsTheUsersWhateverElseItIs) {
  const OwnCode code({}, {"/home/me/cpython/"});
  EXPECT_TRUE(code.is_own_native("/home/me/cpython/python", "/home/me/cpython/Modules/_ctypes/callproc.c"));
  EXPECT_FALSE(OwnCode().is_own_native("/home/me/cpython/build/lib.so", "/home/me/cpython/Modules/_ctypes/callproc.c"));
}

}  // namespace
}  // namespace vramtrack::trace

#include "probe/real.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace vramtrack::probe {
namespace {

TEST(FindFunction, FindsWhatTheLoaderFinds) {
  EXPECT_EQ(find_function("libc.so", "getpid"), dlsym(RTLD_DEFAULT, "getpid"));
  EXPECT_EQ(find_function("libstdc++", "_ZSt9terminatev"), dlsym(RTLD_DEFAULT, "_ZSt9terminatev"));
}

TEST(FindFunction, FallsBackToAnyObject) {
  EXPECT_EQ(find_function("libNoSuchThing", "_ZSt9terminatev"), dlsym(RTLD_DEFAULT, "_ZSt9terminatev"));
  EXPECT_EQ(find_function("libNoSuchThing", "no_such_function"), nullptr);
}

TEST(FindFunction, SkipsVariables) {
  EXPECT_EQ(find_function("libc.so", "environ"), nullptr);
}

TEST(Real, FollowsALibraryThatIsUnloaded) {
  static Real<int()> function("libthread_db", "td_init");
  EXPECT_EQ(function.get(), nullptr);
  for (int i = 0; i < 2; ++i) {
    void* library = dlopen("libthread_db.so.1", RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(library, nullptr);
    EXPECT_EQ(reinterpret_cast<void*>(function.get()), dlsym(library, "td_init"));
    dlclose(library);
    EXPECT_EQ(function.get(), nullptr);
  }
}

}  // namespace
}  // namespace vramtrack::probe

// Every call of the store to SQLite's file system fails in turn, once and from then on.
#include <gmock/gmock.h>

#include <iostream>

#include "fault_io.hpp"
#include "fault_vfs.hpp"
#include "store_session.hpp"

namespace vramtrack {
namespace {

using namespace testing;

struct Kind {
  const char* name;
  std::uint32_t calls;
};
constexpr Kind kKinds[] = {{"open", vfs_call::open},
                           {"read", vfs_call::read},
                           {"write", vfs_call::write},
                           {"full_disk", vfs_call::full},
                           {"truncate", vfs_call::truncate},
                           {"sync", vfs_call::sync},
                           {"size", vfs_call::size},
                           {"lock", vfs_call::lock},
                           {"remove", vfs_call::remove},
                           {"access", vfs_call::access},
                           {"shared_memory", vfs_call::memory},
                           {"all", vfs_call::all}};

class StoreIo : public ::testing::TestWithParam<Kind> {};

TEST_P(StoreIo, EachCallThatFailsIsAnErrorAndLosesNothing) {
  for (const auto how : {FaultPlan::How::once, FaultPlan::How::from_then_on})
    for (const bool expires : {false, true}) {
      if (expires && !every_call() && GetParam().calls != vfs_call::all) continue;
      std::int64_t runs = 0;
      std::int64_t without_a_word = 0;
      std::int64_t calls = 0;
      for (std::int64_t n = 1;; n = after(n), ++runs) {
        SCOPED_TRACE(std::string(GetParam().name) + " call " + std::to_string(n) +
                     (how == FaultPlan::How::once ? " once" : " and all later ones") + (expires ? ", expiring" : ""));
        FaultVfs vfs;
        TempFolder folder;
        StoreSession session(folder.file("vramtrack.db"), expires, vfs.plan());
        {
          const Armed armed(vfs.plan(), GetParam().calls, n, how);
          session.run();
        }
        session.verify();
        calls = vfs.plan().seen();
        if (!HasFailure() && vfs.plan().injected() == 0) {
          EXPECT_EQ(session.expired() > 0, expires) << "in the run in which nothing failed";
        }
        if (HasFailure() || vfs.plan().injected() == 0) break;
        without_a_word += session.errors() == 0;
      }
      std::cout << "store I/O: " << GetParam().name << ' ' << (how == FaultPlan::How::once ? "once" : "from then on")
                << (expires ? ", expiring" : "") << ": " << runs << " of " << calls << " calls, " << without_a_word
                << " without an error told\n";
      if (HasFailure()) return;
    }
}

/// Below SQLite, and the store's own calls: its lock, the file's mode, and whether the file still exists.
TEST(StoreSystemCalls, EachThatFailsIsAnErrorAndLosesNothing) {
  if (!io_can_fail()) GTEST_SKIP() << "a sanitizer stands between";
  watch_this_thread();
  for (const auto how : {FaultPlan::How::once, FaultPlan::How::from_then_on}) {
    std::int64_t runs = 0;
    std::int64_t n = 1;
    for (;; n = after(n), ++runs) {
      SCOPED_TRACE("system call " + std::to_string(n) +
                   (how == FaultPlan::How::once ? " once" : " and all later ones"));
      TempFolder folder;
      const int files = open_files();
      StoreSession session(folder.file("vramtrack.db"), false, io_plan());
      {
        const Armed armed(io_plan(), io_call::all, n, how);
        session.run(5);
      }
      EXPECT_EQ(open_files(), files);
      session.verify();
      if (HasFailure() || io_plan().injected() == 0) break;
    }
    std::cout << "store system calls: " << (how == FaultPlan::How::once ? "once" : "from then on") << ": " << runs
              << " of " << io_plan().seen() << " calls\n";
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, StoreIo, ::testing::ValuesIn(kKinds), [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace vramtrack

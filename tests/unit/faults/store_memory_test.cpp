// Every allocation of the store fails in turn, including those by SQLite and zstd.
#include <iostream>

#include "fault_memory.hpp"
#include "store_session.hpp"

namespace vramtrack {
namespace {

using namespace testing;

TEST(StoreMemory, EachAllocationThatFailsIsAnErrorAndLosesNothing) {
  if (!memory_can_fail()) GTEST_SKIP() << "a sanitizer has the allocator";
  count_this_thread_as_own();
  for (const auto how : {FaultPlan::How::once, FaultPlan::How::from_then_on})
    for (const bool expires : {false, true}) {
      std::int64_t runs = 0;
      std::int64_t n = 1;
      for (;; n = after(n), ++runs) {
        SCOPED_TRACE("allocation " + std::to_string(n) +
                     (how == FaultPlan::How::once ? " once" : " and all later ones") + (expires ? ", expiring" : ""));
        TempFolder folder;
        StoreSession session(folder.file("vramtrack.db"), expires, memory_plan());
        {
          const Armed armed(memory_plan(), memory_call::own, n, how);
          session.run(expires ? 9 : 5);
        }
        session.verify();
        if (HasFailure()) return;
        if (memory_plan().injected() == 0) {
          EXPECT_EQ(session.expired() > 0, expires) << "in the run in which nothing failed";
          break;
        }
      }
      std::cout << "store memory: " << (how == FaultPlan::How::once ? "once" : "from then on")
                << (expires ? ", expiring" : "") << ": " << runs << " runs, the last at allocation " << n << '\n';
    }
}

}  // namespace
}  // namespace vramtrack

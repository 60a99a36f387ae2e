// Every call for a trace's file fails in turn, and every allocation while it is read: an error, or the whole trace.
#include <gmock/gmock.h>
#include <zlib.h>
#include <zstd.h>

#include <fstream>
#include <functional>
#include <iostream>

#include "../temp_folder.hpp"
#include "../trace/sample.hpp"
#include "fault_io.hpp"
#include "fault_memory.hpp"
#include "trace/format.hpp"

namespace vramtrack::trace {
namespace {

using namespace vramtrack::testing;
using test::Era;

std::string packed_by_zstd(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

/// Files of each kind of trace.
class TraceFaults : public ::testing::Test {
 protected:
  TraceFaults() {
    const std::string snapshot = test::Writer(4).dump(test::sample(Era::v212));
    put("snapshot.pickle", snapshot);
    put("snapshot.pickle.zst", packed_by_zstd(snapshot));
    const gzFile gz = gzopen(folder_.file("snapshot.pickle.gz").c_str(), "wb");
    gzwrite(gz, snapshot.data(), static_cast<unsigned>(snapshot.size()));
    gzclose(gz);
    names_.push_back("snapshot.pickle.gz");
    std::string events = "# vramtrack allocation events 1\n";
    for (int i = 0; i < 200; ++i)
      events += std::to_string(i) + " + " + std::to_string(4096 * (i + 1)) + " 4096 f" + std::to_string(i % 7) +
                "@/home/me/model.py:12;main@/home/me/run.py:3\n";
    put("events.txt", events);
    io_plan().let(false);
    memory_plan().let(false);
    watch_this_thread();
    count_this_thread_as_own();
  }
  void put(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_.file(name), std::ios::binary) << bytes;
    names_.push_back(name);
  }

  /// The contents of a trace, in short; an error reports itself. Only the reader's own calls count for `plan`.
  [[nodiscard]] Result<std::string> read(const std::string& name, FaultPlan& plan) const {
    const std::string path = folder_.file(name);
    Symbols symbols;
    auto snapshot = under(plan, [&]() -> Result<Snapshot> {
      auto input = open_trace(path);
      if (!input) return fail(input.error());
      return read_trace(std::move(*input), symbols);
    });
    if (!snapshot) return fail(snapshot.error());
    std::uint64_t bytes = 0;
    std::uint64_t events = 0;
    for (const Block& block : snapshot->blocks) bytes += block.size_bytes;
    for (const DeviceTrace& device : snapshot->traces) events += device.event_count;
    return std::to_string(bytes) + '/' + std::to_string(snapshot->segments.size()) + '/' +
           std::to_string(snapshot->blocks.size()) + '/' + std::to_string(events) + '/' +
           snapshot->file.substr(snapshot->file.rfind('/'));
  }

  /// Lets one call after another fail while each file is read.
  void fail_each(FaultPlan& plan, std::uint32_t kinds, const std::string& what) {
    for (const std::string& name : names_)
      for (const auto how : {FaultPlan::How::once, FaultPlan::How::from_then_on}) {
        const auto whole = read(name, io_plan());
        ASSERT_TRUE(whole) << name << ": " << whole.error().message;
        const int files = open_files();
        std::int64_t errors = 0;
        std::int64_t n = 1;
        for (;; n = after(n)) {
          SCOPED_TRACE(name + ", " + what + " " + std::to_string(n));
          Result<std::string> got;
          {
            const Armed armed(plan, kinds, n, how);
            got = read(name, plan);
          }
          if (plan.injected() == 0) break;
          if (got) {
            EXPECT_EQ(*got, *whole);
          } else {
            EXPECT_FALSE(got.error().message.empty());
            ++errors;
          }
          EXPECT_EQ(open_files(), files);
          if (HasFailure()) return;
        }
        std::cout << "trace " << what << ": " << name << (how == FaultPlan::How::once ? " once" : " from then on")
                  << ": up to call " << n - 1 << ", " << errors << " errors\n";
      }
  }

  TempFolder folder_;
  std::vector<std::string> names_;
};

TEST_F(TraceFaults, EachCallThatFailsIsAnErrorOrTheWholeTrace) {
  if (!io_can_fail()) GTEST_SKIP() << "a sanitizer stands between";
  fail_each(io_plan(), io_call::all, "I/O");
}

TEST_F(TraceFaults, ReadsThatGiveLittleGiveAllInTheEnd) {
  if (!io_can_fail()) GTEST_SKIP() << "a sanitizer stands between";
  for (const std::string& name : names_) {
    const auto whole = read(name, io_plan());
    const Armed armed(io_plan(), io_call::part, 1, FaultPlan::How::from_then_on);
    const auto got = read(name, io_plan());
    EXPECT_GT(io_plan().injected(), 0);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*got, *whole);
  }
}

TEST_F(TraceFaults, InterruptedCallsAreMadeAgain) {
  if (!io_can_fail()) GTEST_SKIP() << "a sanitizer stands between";
  fail_with_errno(EINTR);
  for (const std::string& name : names_)
    for (std::int64_t n = 1;; ++n) {
      const auto whole = read(name, io_plan());
      const Armed armed(io_plan(), io_call::read, n, FaultPlan::How::once);
      const auto got = read(name, io_plan());
      if (io_plan().injected() == 0) break;
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*got, *whole);
    }
  fail_with_errno(EIO);
}

TEST_F(TraceFaults, EachAllocationThatFailsIsAnErrorOrTheWholeTrace) {
  if (!memory_can_fail()) GTEST_SKIP() << "a sanitizer has the allocator";
  fail_each(memory_plan(), memory_call::own, "allocation");
}

}  // namespace
}  // namespace vramtrack::trace

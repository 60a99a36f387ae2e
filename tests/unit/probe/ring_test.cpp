// The ring's pages are present before a record is written: a page fault costs a hooked call more than everything else.
#include "probe/ring.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>

#include "../temp_folder.hpp"

namespace vramtrack::probe {
namespace {

constexpr std::uint64_t kSlotsInPage = 4096 / sizeof(Slot);

/// Whether the page of a slot is in this process's page tables (Documentation/admin-guide/mm/pagemap.rst).
bool is_present(const Ring& ring, std::uint64_t slot) {
  const auto address = reinterpret_cast<std::uint64_t>(&ring.header()) + kRingHeaderBytes + slot * sizeof(Slot);
  std::uint64_t entry = 0;
  const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const ssize_t got = pread(file, &entry, sizeof entry, static_cast<off_t>(address / 4096 * sizeof entry));
  close(file);
  return got == sizeof entry && (entry >> 63U) != 0;
}

bool can_page_in() {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE; Linux 5.14 and newer
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool can = madvise(page, 4096, kPopulateWrite) == 0;
  munmap(page, 4096);
  return can;
}

TEST(Ring, PagesAreThereBeforeRecordsGoToThem) {
  if (sysconf(_SC_PAGESIZE) != 4096 || !can_page_in()) GTEST_SKIP() << "needs Linux 5.14 and pages of 4 KiB";
  const TempFolder folder;
  Ring ring;
  ASSERT_TRUE(ring.create(folder.path().c_str()));
  EXPECT_FALSE(is_present(ring, kRingSlots - 1)) << "the whole ring takes 16 MiB of a program that records little";
  errno = 7;
  for (std::uint64_t slot = 0; slot < 20'000; ++slot) {
    if (slot % kSlotsInPage == 0) {
      ASSERT_TRUE(is_present(ring, slot)) << slot;
    }
    ring.put(head_of(Record::alloc, Call::none, 0, 0, 0), 0, slot, 0);
  }
  EXPECT_EQ(errno, 7);
  ring.forget();
}

TEST(Ring, PagesBeyondItsEndAreLeftAlone) {
  const TempFolder folder;
  Ring ring;
  ASSERT_TRUE(ring.create(folder.path().c_str()));
  for (std::uint64_t slot = 0; slot < 2 * kRingSlots; ++slot) {
    ring.put(head_of(Record::alloc, Call::none, 0, 0, 0), 0, slot, 0);
    ring.header().read.store(slot + 1);
  }
  EXPECT_EQ(ring.header().lost.load(), 0U);
  ring.forget();
}

/// Limits files of this process to `bytes`: a larger one causes a signal that kills.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(Ring, FitsIntoTheLimitForFiles) {
  EXPECT_EQ(ring_slots(~std::uint64_t{0}), kRingSlots);
  EXPECT_EQ(ring_slots(ring_bytes(kFewestRingSlots)), kFewestRingSlots);
  EXPECT_EQ(ring_slots(ring_bytes(kFewestRingSlots) - 1), 0U);
  EXPECT_EQ(ring_slots(1'000'000), 16384U);
  const TempFolder folder;
  Ring ring;
  {
    const FileLimit limit(1'000'000);
    ASSERT_TRUE(ring.create(folder.path().c_str()));
  }
  EXPECT_EQ(ring.header().capacity, 16384U);
  for (std::uint64_t slot = 0; slot < 16385; ++slot) ring.put(head_of(Record::alloc, Call::none, 0, 0, 0), 0, slot, 0);
  EXPECT_EQ(ring.header().lost.load(), 1U);
  ring.forget();
}

TEST(Ring, WithoutRoomForOneThereIsNone) {
  const TempFolder folder;
  Ring ring;
  {
    const FileLimit limit(4096);
    EXPECT_FALSE(ring.create(folder.path().c_str()));
  }
  EXPECT_EQ(errno, EFBIG);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace vramtrack::probe

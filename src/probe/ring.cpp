#include "probe/ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "probe/self.hpp"

namespace vramtrack::probe {
namespace {

/// By the kernel: the C library's fstat() has a new version since 2.33. 0: not an open file.
std::uint64_t inode_of(int file) {
  struct stat status {};
  return syscall(SYS_fstat, file, &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

std::uint64_t nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

std::atomic<std::uint32_t> texts{0};

constexpr int kLowestFile = 500;
/// 64 KiB. A page that is touched for the first time takes a fault, which costs more than all the rest of a record
/// (15 us in some virtual machines), and one record in 128 would meet one. 16 pages at once cost little more than one.
constexpr std::uint64_t kSlotsPagedIn = 2048;
static_assert(kRingSlots % kSlotsPagedIn == 0);
/// MADV_POPULATE_WRITE, which C libraries do not know yet. Linux before 5.14 refuses it: each page is a fault again.
constexpr int kPopulateWrite = 23;

/// Keeps errno: a free is recorded where the program's own is not saved.
__attribute__((noinline)) void page_in(void* begin, std::size_t bytes) {
  const int saved_errno = errno;
  madvise(begin, bytes, kPopulateWrite);
  errno = saved_errno;
}

/// Images of one process (exec), and processes of other pid namespaces with its number.
constexpr std::uint64_t kMostNames = 10'000;

Line<4096>& name(Line<4096>& path, const char* directory, const char* prefix, std::uint64_t number) {
  path = {};
  return path.add(directory).add(prefix).add(static_cast<std::uint64_t>(getpid())).add(".").add(number);
}

/// Under a name that no reader looks at, which is given in `path`; -1: none.
int create_file(const char* directory, Line<4096>& path) {
  for (std::uint64_t number = 1; number <= kMostNames; ++number) {
    if (name(path, directory, "/.ring.", number).is_cut()) return -1;
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

/// Gives the ring at `hidden` its name, the first that is free.
bool publish(const char* directory, const Line<4096>& hidden) {
  Line<4096> path;
  for (std::uint64_t number = 1; number <= kMostNames; ++number) {
    if (link(hidden.c_str(), name(path, directory, "/ring.", number).c_str()) == 0) {
      unlink(hidden.c_str());
      return true;
    }
    if (errno != EEXIST) return false;
  }
  return false;
}

}  // namespace

bool Ring::create(const char* directory) {
  Line<4096> hidden;
  const int file = create_file(directory, hidden);
  if (file < 0) return false;
  const std::size_t bytes = kRingHeaderBytes + kRingSlots * sizeof(Slot);
  // Room is taken now: a full file system is an error here, and not SIGBUS in the program later.
  void* mapped = MAP_FAILED;
  if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0)
    mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    close(file);
    unlink(hidden.c_str());
    return false;
  }
  begin(mapped, bytes);
  page_in(mapped, kRingHeaderBytes + kSlotsPagedIn * sizeof(Slot));
  hold(file);
  // A reader takes the ring from here on.
  if (publish(directory, hidden)) return true;
  unlink(hidden.c_str());
  forget();
  return false;
}

bool Ring::create_private() {
  void* mapped = reserve(kRingHeaderBytes);
  if (mapped == nullptr) return false;
  begin(mapped, kRingHeaderBytes);
  slots_ = nullptr;
  return true;
}

void Ring::begin(void* mapped, std::size_t bytes) {
  auto* header = static_cast<RingHeader*>(mapped);
  mapped_bytes_ = bytes;
  slots_ = reinterpret_cast<Slot*>(static_cast<char*>(mapped) + kRingHeaderBytes);
  begin_monotonic_ns_ = nanoseconds(CLOCK_MONOTONIC);
  header->magic = kRingMagic;
  header->version = kWireVersion;
  header->pid = static_cast<std::uint32_t>(getpid());
  header->start_ticks = start_ticks();
  header->capacity = kRingSlots;
  header->begin_realtime_us = static_cast<std::int64_t>(nanoseconds(CLOCK_REALTIME) / 1000);
  header->recording.store(1, std::memory_order_release);
  header_ = header;
}

/// Keeps `file` with its lock, which ends with this image of the process: by exit, by a signal, by exec.
void Ring::hold(int file) {
  // Out of the way of programs that count on the lowest numbers.
  const int high = fcntl(file, F_DUPFD_CLOEXEC, kLowestFile);
  if (high >= 0) close(file);
  file_ = high >= 0 ? high : file;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  fcntl(file_, F_OFD_SETLK, &lock);  // without (Linux before 3.15) the reader asks for the pid alone
  inode_ = inode_of(file_);
}

void Ring::forget() {
  if (header_ != nullptr) munmap(header_, mapped_bytes_);
  header_ = nullptr;
  slots_ = nullptr;
  // A program that closes all files may have another one under that number.
  if (file_ >= 0 && inode_of(file_) == inode_) close(file_);
  file_ = -1;
}

std::uint64_t Ring::now_us() const {
  return (nanoseconds(CLOCK_MONOTONIC) - begin_monotonic_ns_) / 1000;
}

void Ring::put(std::uint64_t head, std::uint64_t a, std::uint64_t address, std::uint64_t bytes) {
  if (slots_ == nullptr) return;
  std::uint64_t at = header_->written.load(std::memory_order_relaxed);
  do {
    if (at - header_->read.load(std::memory_order_acquire) >= kRingSlots) {
      header_->lost.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  } while (!header_->written.compare_exchange_weak(at, at + 1, std::memory_order_relaxed));
  Slot& slot = slots_[at & (kRingSlots - 1)];
  slot.a = a;
  slot.address = address;
  slot.bytes = bytes;
  std::atomic_ref<std::uint64_t>(slot.head).store(head, std::memory_order_release);
  if (at % kSlotsPagedIn == 0 && at + kSlotsPagedIn < kRingSlots)
    page_in(slots_ + at + kSlotsPagedIn, kSlotsPagedIn * sizeof(Slot));
}

void Ring::put_text(std::uint32_t number, std::string_view text) {
  const std::uint64_t head = head_of(Record::text, Call::none, 0, 0, number);
  std::size_t offset = 0;
  do {
    std::uint64_t piece[2] = {};
    std::memcpy(piece, text.data() + offset, std::min(kTextBytes, text.size() - offset));
    put(head, offset | static_cast<std::uint64_t>(text.size()) << 32U, piece[0], piece[1]);
    offset += kTextBytes;
  } while (offset < text.size());
}

std::uint32_t next_text() {
  return texts.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint32_t tell(std::string_view text) {
  const std::uint32_t number = next_text();
  ring().put_text(number, text);
  return number;
}

}  // namespace vramtrack::probe

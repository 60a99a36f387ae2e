#include "probe/ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

/// Asks the kernel directly, because the C library's fstat() has a new version since 2.33. All 0: not an open file.
struct stat status_of(int file) {
  struct stat status {};
  if (syscall(SYS_fstat, file, &status) != 0) status = {};
  return status;
}
std::uint64_t inode_of(int file) {
  return static_cast<std::uint64_t>(status_of(file).st_ino);
}

std::uint64_t nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

std::atomic<std::uint32_t> texts{0};

constexpr int kLowestFile = 500;
/// 64 KiB. The first access to a page causes a fault, which costs more than the rest of a record (15 us in some virtual
/// machines) and affects one record in 128. Populating 16 pages at once costs little more than one.
constexpr std::uint64_t kSlotsPagedIn = 2048;
static_assert(kFewestRingSlots % kSlotsPagedIn == 0);
/// MADV_POPULATE_WRITE, which C libraries do not define yet. Linux before 5.14 refuses it: then each page faults.
constexpr int kPopulateWrite = 23;

/// Preserves errno, because a free may be recorded where the program's own errno is not saved.
__attribute__((noinline)) void page_in(void* begin, std::size_t bytes) {
  const int saved_errno = errno;
  madvise(begin, bytes, kPopulateWrite);
  errno = saved_errno;
}

/// Limits the images of one process (exec) and the processes of other pid namespaces with its number.
constexpr std::uint64_t kMostNames = 10'000;

Line<4096>& name(Line<4096>& path, const char* directory, const char* prefix, std::uint64_t number) {
  path = {};
  return path.add(directory).add(prefix).add(static_cast<std::uint64_t>(getpid())).add(".").add(number);
}

/// The maximum file size of this process: growing a file past it raises a fatal signal.
std::uint64_t file_size_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

/// Takes a lock that is held until this image of the process ends (exit, signal, exec). False if another process has
/// it; without such locks (Linux before 3.15), nobody has.
bool lock(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

struct File {
  int number = -1;  ///< -1: none
  std::uint64_t slots = 0;
};

/// Takes a spare file under a name that readers ignore, which is returned in `path`.
File take_spare(const char* directory, Line<4096>& path) {
  for (std::uint64_t i = 0; i < kSpareRings; ++i) {
    path = {};
    if (path.add(directory).add(kSpareRing).add(i).is_cut()) break;
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    const std::uint64_t slots = ring_slots(static_cast<std::uint64_t>(status_of(file).st_size));
    std::uint64_t magic = 0;  // nonzero for an ended ring that has lost its name
    if (slots != 0 && lock(file) && pread(file, &magic, sizeof magic, 0) == sizeof magic && magic == 0)
      return {file, slots};
    close(file);
  }
  return {};
}

/// The same with a new file of this process.
File create_file(const char* directory, Line<4096>& path) {
  const std::uint64_t slots = ring_slots(file_size_limit());
  if (slots == 0) {
    errno = EFBIG;
    return {};
  }
  for (std::uint64_t number = 1; number <= kMostNames; ++number) {
    if (name(path, directory, "/.ring.", number).is_cut()) return {};
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) return {file, slots};
    if (errno != EEXIST) return {};
  }
  return {};
}

/// Allocates space now, so that a full file system causes an error here instead of a SIGBUS in the program later.
bool take_room(int file, std::size_t bytes) {
  if (fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0) return true;
  // If the file system does not support this call, write instead, which the limit forbids even within a file.
  return errno == EOPNOTSUPP && bytes <= file_size_limit() && posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0;
}

/// Gives the ring at `hidden` the first free name.
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
  File file = take_spare(directory, hidden);
  if (file.number < 0) file = create_file(directory, hidden);
  if (file.number < 0) return false;
  const std::size_t bytes = ring_bytes(file.slots);
  void* mapped = MAP_FAILED;
  if (take_room(file.number, bytes)) mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
  if (mapped == MAP_FAILED) {
    close(file.number);
    unlink(hidden.c_str());
    return false;
  }
  begin(mapped, bytes, file.slots);
  page_in(mapped, ring_bytes(kSlotsPagedIn));
  hold(file.number);
  // From here on, a reader may take the ring.
  if (publish(directory, hidden)) return true;
  unlink(hidden.c_str());
  forget();
  return false;
}

bool Ring::create_private() {
  void* mapped = reserve(kRingHeaderBytes);
  if (mapped == nullptr) return false;
  begin(mapped, kRingHeaderBytes, 0);
  slots_ = nullptr;
  return true;
}

void Ring::begin(void* mapped, std::size_t bytes, std::uint64_t slots) {
  auto* header = static_cast<RingHeader*>(mapped);
  mapped_bytes_ = bytes;
  slots_ = reinterpret_cast<Slot*>(static_cast<char*>(mapped) + kRingHeaderBytes);
  slot_count_ = slots;
  begin_monotonic_ns_ = nanoseconds(CLOCK_MONOTONIC);
  header->magic = kRingMagic;
  header->version = kWireVersion;
  header->pid = static_cast<std::uint32_t>(getpid());
  header->start_ticks = start_ticks();
  header->capacity = slots;
  header->begin_realtime_us = static_cast<std::int64_t>(nanoseconds(CLOCK_REALTIME) / 1000);
  header->recording.store(1, std::memory_order_release);
  header_ = header;
}

/// Keeps `file` with its lock; without a lock, the reader checks only the pid.
void Ring::hold(int file) {
  // Use a number high enough not to affect programs that rely on the lowest ones.
  const int high = fcntl(file, F_DUPFD_CLOEXEC, kLowestFile);
  if (high >= 0) close(file);
  file_ = high >= 0 ? high : file;
  lock(file_);
  inode_ = inode_of(file_);
}

void Ring::forget() {
  if (header_ != nullptr) munmap(header_, mapped_bytes_);
  header_ = nullptr;
  slots_ = nullptr;
  // After closing all files, a program may have another file under that number.
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
    if (at - header_->read.load(std::memory_order_acquire) >= slot_count_) {
      header_->lost.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  } while (!header_->written.compare_exchange_weak(at, at + 1, std::memory_order_relaxed));
  Slot& slot = slots_[at & (slot_count_ - 1)];
  slot.a = a;
  slot.address = address;
  slot.bytes = bytes;
  std::atomic_ref<std::uint64_t>(slot.head).store(head, std::memory_order_release);
  if (at % kSlotsPagedIn == 0 && at + kSlotsPagedIn < slot_count_)
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

std::uint32_t record_text(std::string_view text) {
  const std::uint32_t number = next_text();
  ring().put_text(number, text);
  return number;
}

}  // namespace vramtrack::probe

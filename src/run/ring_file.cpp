#include "run/ring_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/errno_words.hpp"
#include "host/process.hpp"

namespace vramtrack::run {

using probe::RingHeader;
using probe::Slot;

Result<RingFile> RingFile::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return fail(fmt::format("{}: {}", path, errno_words(errno)));
  struct stat status {};
  const bool is_whole = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                        static_cast<std::size_t>(status.st_size) >= probe::kRingHeaderBytes;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* mapped = is_whole ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (mapped == MAP_FAILED) {
    ::close(file);
    return fail(fmt::format("{}: no ring, or its program is still making it", path));
  }
  RingFile ring;
  ring.file_ = file;
  ring.header_ = static_cast<RingHeader*>(mapped);
  ring.slots_ = reinterpret_cast<Slot*>(static_cast<char*>(mapped) + probe::kRingHeaderBytes);
  ring.mapped_bytes_ = bytes;
  if (std::atomic_ref<std::uint64_t>(ring.header_->magic).load(std::memory_order_acquire) != probe::kRingMagic)
    return fail(fmt::format("{}: no ring, or its program is still making it", path));
  if (ring.header_->version != probe::kWireVersion)
    return fail(
        fmt::format("{}: a ring of version {}; this vramtrack reads version {}: use the probe that comes with it", path,
                    ring.header_->version, probe::kWireVersion));
  const std::uint64_t capacity = ring.header_->capacity;
  if (!std::has_single_bit(capacity) || capacity > (bytes - probe::kRingHeaderBytes) / sizeof(Slot))
    return fail(fmt::format("{}: damaged: {} records do not fit into {} bytes", path, capacity, bytes));
  ring.capacity_ = capacity;
  return ring;
}

RingFile::RingFile(RingFile&& other) noexcept {
  *this = std::move(other);
}
RingFile& RingFile::operator=(RingFile&& other) noexcept {
  std::swap(header_, other.header_);
  std::swap(slots_, other.slots_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(lost_, other.lost_);
  std::swap(capacity_, other.capacity_);
  std::swap(file_, other.file_);
  return *this;
}
RingFile::~RingFile() {
  if (header_ != nullptr) ::munmap(header_, mapped_bytes_);
  if (file_ >= 0) ::close(file_);
}

bool RingFile::is_abandoned() const {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) return false;
  std::string path;
  const auto alive = process_alive("/proc", pid(), path);
  // A program that closes all unknown files also loses the lock.
  return !alive || alive->start_ticks != start_ticks() || !is_mapped();
}

bool RingFile::is_mapped() const {
  struct stat status {};
  if (::fstat(file_, &status) != 0) return true;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid()));
  if (!maps) return true;  // another user's process: only the pid can be checked
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string range, mode, offset, device;
    std::uint64_t inode = 0;
    if (fields >> range >> mode >> offset >> device >> inode && inode == status.st_ino &&
        line.find("ring.") != std::string::npos)
      return true;
  }
  return false;
}

std::size_t RingFile::take(std::vector<Slot>& into, std::size_t most, bool is_over) {
  // A file that was truncated after it was mapped would crash this process at the first access.
  struct stat status {};
  if (::fstat(file_, &status) != 0 || static_cast<std::size_t>(status.st_size) < mapped_bytes_) return 0;
  const std::uint64_t capacity = capacity_;
  const std::uint64_t begin = header_->read.load(std::memory_order_relaxed);
  const std::uint64_t written = header_->written.load(std::memory_order_acquire);
  const std::size_t before = into.size();
  std::uint64_t at = begin;
  // A program may write anything there, so never take more than the ring holds.
  for (; at != written && at - begin < capacity && into.size() - before < most; ++at) {
    Slot& slot = slots_[at & (capacity - 1)];
    const std::uint64_t head = std::atomic_ref<std::uint64_t>(slot.head).load(std::memory_order_acquire);
    if (head == 0) {
      if (!is_over) break;
      continue;
    }
    into.push_back({head, slot.a, slot.address, slot.bytes});
    std::atomic_ref<std::uint64_t>(slot.head).store(0, std::memory_order_relaxed);
  }
  header_->read.store(at, std::memory_order_release);
  if (const std::uint64_t lost = header_->lost.load(std::memory_order_relaxed); lost > lost_) {
    into.push_back({probe::head_of(probe::Record::lost, probe::Call::none, 0, 0, 0), lost - lost_, 0, 0});
    lost_ = lost;
  }
  return into.size() - before;
}

}  // namespace vramtrack::run

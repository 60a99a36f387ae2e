#include "probe/self.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

// Names defined by the linker: begin and end of the list of VRAMTRACK_ON_FORK. Weak, as a program may link none.
using OnFork = void (*)();
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
// NOLINTBEGIN(readability-identifier-naming): the linker names them
extern OnFork __start_vramtrack_on_fork[] __attribute__((weak, visibility("hidden")));
extern OnFork __stop_vramtrack_on_fork[] __attribute__((weak, visibility("hidden")));
// NOLINTEND(readability-identifier-naming)
// NOLINTEND(bugprone-reserved-identifier)
}

namespace vramtrack::probe {

std::size_t read_file(const char* path, char* into, std::size_t bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::size_t size = 0;
  while (size < bytes) {
    const ssize_t got = read(file, into + size, bytes - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  close(file);
  return size;
}

std::uint64_t start_ticks() {
  char text[1024];
  const std::size_t size = read_file("/proc/self/stat", text, sizeof text);
  // The command may contain anything, so count fields from its last parenthesis, which ends field 2.
  std::size_t at = size;
  while (at > 0 && text[at - 1] != ')') --at;
  std::uint64_t ticks = 0;
  int field = 2;
  for (; at < size && field <= 22; ++at) {
    if (text[at] == ' ')
      ++field;
    else if (field == 22 && text[at] >= '0' && text[at] <= '9')
      ticks = ticks * 10 + static_cast<std::uint64_t>(text[at] - '0');
  }
  return ticks;
}

std::uint64_t thread_id() {
  return static_cast<std::uint64_t>(syscall(SYS_gettid));
}

const char* setting(const char* name) {
  return std::getenv(name);
}

void warn(std::string_view text) {
  Line<512> line;
  line.add("vramtrack: ").add(text).add("\n");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.c_str(), line.view().size());
}

void* reserve(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void give_back(void* memory, std::size_t bytes) {
  if (memory != nullptr) munmap(memory, bytes);
}

void Spin::lock() {
  std::atomic_ref<std::uint32_t> taken(taken_);
  while (taken.exchange(1, std::memory_order_acquire) != 0)
    for (int i = 0; taken.load(std::memory_order_relaxed) != 0; ++i)
      if (i % 64 == 63) sched_yield();
}
void Spin::unlock() {
  std::atomic_ref<std::uint32_t>(taken_).store(0, std::memory_order_release);
}
bool Spin::reset() {
  return std::atomic_ref<std::uint32_t>(taken_).exchange(0, std::memory_order_acq_rel) != 0;
}

void forget_after_fork() {
  for (const OnFork* each = __start_vramtrack_on_fork; each != __stop_vramtrack_on_fork; ++each) (*each)();
}

}  // namespace vramtrack::probe

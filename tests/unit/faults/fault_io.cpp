#include "fault_io.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>

namespace vramtrack::testing {
namespace {

FaultPlan g_plan;
int g_errno = EIO;
thread_local bool t_watched = false;
std::atomic<bool> g_all_watched{false};

}  // namespace

FaultPlan& io_plan() {
  return g_plan;
}
void watch_this_thread() {
  t_watched = true;
}
void watch_all_threads(bool watch) {
  g_all_watched = watch;
}
void fail_with_errno(int number) {
  g_errno = number;
}
int open_files() {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) count += file.exists();
  return count - 1;  // the folder itself
}

bool io_can_fail() {
#ifdef VRAMTRACK_SANITIZED
  return false;
#else
  return true;
#endif
}

#ifndef VRAMTRACK_SANITIZED
namespace {

/// The next definition of a function after that of this program.
template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool fails(std::uint32_t kind) {
  if (!(t_watched || g_all_watched) || !g_plan.fails(kind)) return false;
  errno = g_errno;
  return true;
}
std::size_t asked(std::size_t bytes) {
  return t_watched && bytes > 1 && g_plan.fails(io_call::part) ? 1 : bytes;
}

}  // namespace
#endif

}  // namespace vramtrack::testing

#ifndef VRAMTRACK_SANITIZED
// Uses the names that the linker knows, because the headers declare these functions in various ways. A definition here
// takes precedence over the C library's, including for the libraries.
using vramtrack::testing::asked;
using vramtrack::testing::fails;
using vramtrack::testing::real;
namespace io_call = vramtrack::testing::io_call;

#define VRAMTRACK_CALL(result, name, kind, parameters, arguments) \
  extern "C" result fault_##name parameters __asm__(#name);       \
  extern "C" result fault_##name parameters {                     \
    static auto* const call = real<result parameters>(#name);     \
    return fails(kind) ? -1 : call arguments;                     \
  }

VRAMTRACK_CALL(int, open, io_call::open, (const char* path, int flags, unsigned mode), (path, flags, mode))
VRAMTRACK_CALL(int, open64, io_call::open, (const char* path, int flags, unsigned mode), (path, flags, mode))
VRAMTRACK_CALL(int, openat, io_call::open, (int at, const char* path, int flags, unsigned mode),
               (at, path, flags, mode))
VRAMTRACK_CALL(long, read, io_call::read, (int fd, void* into, std::size_t n), (fd, into, asked(n)))
VRAMTRACK_CALL(long, pread, io_call::read, (int fd, void* into, std::size_t n, long at), (fd, into, asked(n), at))
VRAMTRACK_CALL(long, pread64, io_call::read, (int fd, void* into, std::size_t n, long at), (fd, into, asked(n), at))
VRAMTRACK_CALL(long, write, io_call::write, (int fd, const void* from, std::size_t n), (fd, from, asked(n)))
VRAMTRACK_CALL(long, pwrite, io_call::write, (int fd, const void* from, std::size_t n, long at),
               (fd, from, asked(n), at))
VRAMTRACK_CALL(long, pwrite64, io_call::write, (int fd, const void* from, std::size_t n, long at),
               (fd, from, asked(n), at))
VRAMTRACK_CALL(int, fsync, io_call::sync, (int fd), (fd))
VRAMTRACK_CALL(int, fdatasync, io_call::sync, (int fd), (fd))
VRAMTRACK_CALL(int, rename, io_call::rename, (const char* from, const char* to), (from, to))
VRAMTRACK_CALL(int, unlink, io_call::remove, (const char* path), (path))
VRAMTRACK_CALL(int, ftruncate, io_call::size, (int fd, long size), (fd, size))
VRAMTRACK_CALL(int, ftruncate64, io_call::size, (int fd, long size), (fd, size))
VRAMTRACK_CALL(int, fstat, io_call::stat, (int fd, void* out), (fd, out))
VRAMTRACK_CALL(int, fstat64, io_call::stat, (int fd, void* out), (fd, out))
VRAMTRACK_CALL(int, stat, io_call::stat, (const char* path, void* out), (path, out))
VRAMTRACK_CALL(int, stat64, io_call::stat, (const char* path, void* out), (path, out))
VRAMTRACK_CALL(int, lstat, io_call::stat, (const char* path, void* out), (path, out))
VRAMTRACK_CALL(int, lstat64, io_call::stat, (const char* path, void* out), (path, out))
VRAMTRACK_CALL(int, access, io_call::stat, (const char* path, int mode), (path, mode))
VRAMTRACK_CALL(int, flock, io_call::lock, (int fd, int operation), (fd, operation))
VRAMTRACK_CALL(int, mkdir, io_call::folder, (const char* path, unsigned mode), (path, mode))
VRAMTRACK_CALL(int, fchmod, io_call::folder, (int fd, unsigned mode), (fd, mode))
VRAMTRACK_CALL(long, lseek, io_call::seek, (int fd, long offset, int whence), (fd, offset, whence))
VRAMTRACK_CALL(long, lseek64, io_call::seek, (int fd, long offset, int whence), (fd, offset, whence))
#endif

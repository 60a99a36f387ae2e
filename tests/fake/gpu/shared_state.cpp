#include "shared_state.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace fake_gpu {
namespace {

/// Never destroyed: PyTorch frees memory from its own static destructors. A fork waits for it, so that no child is born
/// locked.
std::mutex& in_process() {
  static std::mutex& mutex = *[] {
    static auto* made = new std::mutex;
    pthread_atfork([] { made->lock(); }, [] { made->unlock(); }, [] { made->unlock(); });
    return made;
  }();
  return mutex;
}

[[noreturn]] void stop(const std::string& path) {
  std::perror(("fake GPU: VRAMTRACK_FAKE_GPU_STATE " + path).c_str());
  std::abort();
}

}  // namespace

/// flock, not fcntl: the driver and NVML of one process open the file independently and must exclude each other.
class SharedState::Lock {
 public:
  explicit Lock(SharedState& state) : state_(state), held_(in_process()) {
    if (state_.opened_by_ != getpid()) state_.open_file();
    if (state_.file_ < 0) return;
    while (flock(state_.file_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  ~Lock() {
    if (state_.file_ >= 0) flock(state_.file_, LOCK_UN);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  SharedState& state_;
  std::lock_guard<std::mutex> held_;
};

SharedState& SharedState::at(const std::string& path) {
  static auto& states = *new std::map<std::string, SharedState*>;
  const std::lock_guard<std::mutex> held(in_process());
  SharedState*& state = states[path];
  if (state == nullptr) state = new SharedState(path);
  return *state;
}

SharedState& SharedState::get() {
  const char* path = std::getenv("VRAMTRACK_FAKE_GPU_STATE");
  static SharedState& state = at(path != nullptr ? path : "");
  return state;
}

SharedState::SharedState(std::string path) : path_(std::move(path)) {}

void SharedState::open_file() {
  opened_by_ = getpid();
  if (!path_.empty()) {
    if (file_ >= 0) close(file_);
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0 || ftruncate(file_, sizeof *rows_) != 0) stop(path_);
  }
  if (rows_ != nullptr) return;
  const int flags = file_ >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS;
  void* mapped = mmap(nullptr, sizeof *rows_, PROT_READ | PROT_WRITE, flags, file_, 0);
  if (mapped == MAP_FAILED) stop(path_);
  rows_ = static_cast<std::array<ProcessUse, kRows>*>(mapped);
}

void SharedState::drop_ended() {
  for (ProcessUse& row : *rows_)
    if (row.pid != 0 && kill(row.pid, 0) != 0 && errno == ESRCH) row = {};
}

ProcessUse* SharedState::mine() {
  const int pid = getpid();
  ProcessUse* unused = nullptr;
  for (ProcessUse& row : *rows_) {
    if (row.pid == pid) return &row;
    if (row.pid == 0 && unused == nullptr) unused = &row;
  }
  if (unused != nullptr) unused->pid = pid;
  return unused;
}

bool SharedState::charge(int device, std::uint64_t bytes) {
  const Lock lock(*this);
  drop_ended();
  const auto at = static_cast<std::size_t>(device);
  std::uint64_t used = bytes;
  for (const ProcessUse& row : *rows_) used += row.bytes.at(at);
  ProcessUse* row = mine();
  if (row == nullptr || used > device_bytes(device)) return false;
  row->bytes.at(at) += bytes;
  return true;
}

void SharedState::give_back(int device, std::uint64_t bytes) {
  const Lock lock(*this);
  if (ProcessUse* row = mine(); row != nullptr) row->bytes.at(static_cast<std::size_t>(device)) -= bytes;
}

std::uint64_t SharedState::used_bytes(int device) {
  std::uint64_t used = 0;
  for (const ProcessUse& process : processes(device)) used += process.bytes.at(static_cast<std::size_t>(device));
  return used;
}

std::vector<ProcessUse> SharedState::processes(int device) {
  const Lock lock(*this);
  drop_ended();
  std::vector<ProcessUse> found;
  for (const ProcessUse& row : *rows_)
    if (row.bytes.at(static_cast<std::size_t>(device)) != 0) found.push_back(row);
  return found;
}

void SharedState::leave() {
  const Lock lock(*this);
  const int pid = getpid();
  for (ProcessUse& row : *rows_)
    if (row.pid == pid) row = {};
}

}  // namespace fake_gpu

// What is charged for an allocation, scripted failures, and the trace.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "../shared_state.hpp"
#include "driver.hpp"

namespace fake_gpu {
namespace {

std::array<std::uint64_t, kMaxDevices> small_bytes;

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

std::FILE* trace_file() {
  static std::FILE* file = [] {
    const char* path = std::getenv("VRAMTRACK_FAKE_GPU_TRACE");
    std::FILE* opened = path != nullptr && *path != '\0' ? std::fopen(path, "ae") : nullptr;
    if (opened != nullptr) std::setvbuf(opened, nullptr, _IOLBF, BUFSIZ);
    return opened;
  }();
  return file;
}

}  // namespace

std::mutex& driver_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

bool scripted_failure() {
  static std::atomic<long> asked{0};
  const long number = ++asked;
  const char* text = std::getenv("VRAMTRACK_FAKE_GPU_FAIL_AT");
  if (text == nullptr || *text == '\0') return false;
  char* rest = nullptr;
  const long at = std::strtol(text, &rest, 10);
  return *rest == '+' ? number >= at : number == at;
}

CUresult take(int device, std::uint64_t bytes, bool small) {
  if (scripted_failure()) return kOutOfMemory;
  if (!small) return SharedState::get().charge(device, whole_pages(bytes)) ? kOk : kOutOfMemory;
  std::uint64_t& shared = small_bytes.at(static_cast<std::size_t>(device));
  const std::uint64_t more = whole_pages(shared + bytes) - whole_pages(shared);
  if (more != 0 && !SharedState::get().charge(device, more)) return kOutOfMemory;
  shared += bytes;
  return kOk;
}

void give_back(int device, std::uint64_t bytes, bool small) {
  if (!small) {
    SharedState::get().give_back(device, whole_pages(bytes));
    return;
  }
  std::uint64_t& shared = small_bytes.at(static_cast<std::size_t>(device));
  const std::uint64_t before = whole_pages(shared);
  shared -= bytes;
  if (const std::uint64_t less = before - whole_pages(shared); less != 0) SharedState::get().give_back(device, less);
}

void trace(const char* call, int device, std::uint64_t address, std::uint64_t bytes, CUresult code) {
  std::FILE* file = trace_file();
  if (file == nullptr) return;
  std::fprintf(file, "%d %s device=%d address=0x%llx bytes=%llu code=%d\n", getpid(), call, device,
               static_cast<unsigned long long>(address), static_cast<unsigned long long>(bytes), code);
}

std::uint64_t next_handle() {
  static std::atomic<std::uint64_t> last{0x1000};
  return last += 16;
}

namespace {

struct Beside {
  int device;
  std::uint64_t bytes;
};
std::map<std::uint64_t, Beside> besides;

}  // namespace

CUresult take_beside(std::uint64_t* handle, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const int device = bytes != 0 && current_context() != nullptr ? current_context()->device : -1;
  if (device >= 0 && !SharedState::get().charge(device, bytes)) return kOutOfMemory;
  *handle = next_handle();
  if (device >= 0) besides[*handle] = {device, bytes};
  return kOk;
}

void give_back_beside(std::uint64_t handle) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const auto known = besides.find(handle);
  if (known == besides.end()) return;
  SharedState::get().give_back(known->second.device, known->second.bytes);
  besides.erase(known);
}

}  // namespace fake_gpu

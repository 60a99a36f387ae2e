#include "agent/own_cost.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace vramtrack::agent {
namespace {

constexpr std::chrono::seconds kSizeEvery{10};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  in >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t store_size(const std::string& path) {
  std::uint64_t bytes = 0;
  for (const char* part : {"", "-wal"}) {  // the latest commits are in the log beside the file
    struct stat info {};
    if (::stat((path + part).c_str(), &info) == 0) bytes += static_cast<std::uint64_t>(info.st_size);
  }
  return bytes;
}

}  // namespace

void OwnUse::add_to(OwnCost& cost, const std::string& store_path) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  cost.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  cost.resident_bytes = resident_bytes();
  cost.recording = !store_path.empty();
  if (const auto now = std::chrono::steady_clock::now(); cost.recording && now >= next_size_) {
    next_size_ = now + kSizeEvery;
    store_bytes_ = store_size(store_path);
  }
  cost.store_bytes = cost.recording ? store_bytes_ : 0;
}

}  // namespace vramtrack::agent

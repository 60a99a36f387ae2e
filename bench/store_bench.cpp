// What a watch's store costs: CPU a second of watching, memory, bytes on disk. Simulates a machine at 1 Hz as fast
// as the store takes it, with retention as it would run.
//
//   store_bench [--gpus 8] [--processes 64 | --per-gpu 64] [--days 30] [--dir DIR]
//
// Values as GPUs show them: most processes hold a flat multiple of 2 MiB, some grow, some change at every tick; times
// carry milliseconds of jitter.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace {

using namespace vramtrack;

/// splitmix64: the same run every time.
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
};

constexpr std::uint64_t kPage = 2U << 20;

/// A process: 60 % flat with a change now and then, 15 % growing, 15 % jittering by pages, 10 % by bytes (fdinfo
/// drivers).
struct Process {
  SeriesId series{};
  std::size_t device = 0;
  unsigned kind = 0;
  std::uint64_t base = 0, bytes = 0;
  void tick(Random& random) {
    const std::uint64_t r = random.next();
    if (kind < 60) {
      if (r % 3600 == 0) bytes = base + (r >> 32) % 64 * kPage;
    } else if (kind < 75) {
      if (r % 8 == 0) bytes += kPage;
      if (bytes > base + 4096 * kPage) bytes = base;
    } else if (kind < 90) {
      bytes = base + r % 32 * kPage;
    } else {
      bytes = base + r % (256U << 20) / 4096 * 4096;
    }
  }
};

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A line of /proc/self/status in KiB.
long status_kib(const char* key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key, 0) == 0) return std::atol(line.c_str() + std::strlen(key) + 1);
  return 0;
}

double size_mb(const std::string& path) {
  struct stat there {};
  return stat(path.c_str(), &there) == 0 ? static_cast<double>(there.st_size) / 1e6 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t gpus = 8, processes = 64, days = 30;
  std::string dir = "/tmp";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const auto number = static_cast<std::size_t>(std::strtoull(argv[i + 1], nullptr, 10));
    if (option == "--gpus") gpus = number;
    if (option == "--processes") processes = number;
    if (option == "--per-gpu") processes = number * gpus;
    if (option == "--days") days = number;
    if (option == "--dir") dir = argv[i + 1];
  }
  Catalog catalog;
  std::vector<SeriesId> devices;
  std::vector<Process> running;
  Random random{42};
  for (std::size_t g = 0; g < gpus; ++g) {
    const std::string id = fmt::format("GPU-{:08x}-0000-0000-0000-000000000000", g);
    catalog.describe(
        DeviceInfo{.id = id, .index = static_cast<int>(g), .name = "NVIDIA H200", .capacity_bytes = 141ULL << 30});
    devices.push_back(catalog.intern({Metric::device_used, id, 0, 0}));
  }
  for (std::size_t p = 0; p < processes; ++p) {
    Process process;
    process.device = p % gpus;
    const auto pid = static_cast<std::uint32_t>(1000 + p);
    const SeriesKey device = catalog.key(devices[process.device]);
    process.series = catalog.intern({Metric::process_used, device.device_id, pid, 77});
    catalog.describe(ProcessInfo{
        .pid = pid, .start_ticks = 77, .user = "ada", .command = fmt::format("python train.py --rank {}", p)});
    process.kind = static_cast<unsigned>(p * 37 % 100);
    process.base = process.bytes = (200 + random.next() % 2000) * kPage;
    running.push_back(process);
  }

  StoreConfig config;
  config.path = fmt::format("{}/vramtrack-store-bench-{}.db", dir, getpid());
  const std::int64_t second = 1'000'000'000, start = 1'767'225'600 * second;
  Batch batch;
  batch.samples.reserve(devices.size() + running.size());
  std::vector<std::uint64_t> used(gpus);
  const auto make_tick = [&](std::size_t t) {
    batch.clear();
    const std::int64_t jitter_ms = static_cast<std::int64_t>(random.next() % 5);
    const Timestamp now{Duration(start + static_cast<std::int64_t>(t) * second + jitter_ms * 1'000'000)};
    for (std::uint64_t& u : used) u = 500 * kPage;
    for (Process& p : running) {
      p.tick(random);
      used[p.device] += p.bytes;
    }
    for (std::size_t g = 0; g < gpus; ++g) batch.samples.push_back({now, devices[g], used[g]});
    for (const Process& p : running) batch.samples.push_back({now, p.series, p.bytes});
  };

  // What making the values costs is measured first and taken off.
  const Random before = random;
  const auto saved = running;
  const double idle_begin = cpu_s();
  for (std::size_t t = 0; t < 100'000; ++t) make_tick(t);
  const double tick_s = (cpu_s() - idle_begin) / 100'000;
  random = before;
  running = saved;

  const long rss_before_kib = status_kib("VmRSS");
  auto store = Store::open(config, catalog, Timestamp{Duration(start)});
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().message);
    return 1;
  }
  const std::size_t seconds = days * 86400;
  const double begin = cpu_s();
  double slowest_ms = 0;
  for (std::size_t t = 0; t < seconds; ++t) {
    make_tick(t);
    const Duration passed = std::chrono::seconds{t};
    const Timestamp now = Timestamp{Duration(start)} + passed;
    const auto from = std::chrono::steady_clock::now();
    (*store)->keep_time({.boot_id = "boot", .since_boot = passed, .wall = now, .stamp = now});
    if (auto s = (*store)->append(batch); !s) {
      fmt::print(stderr, "{}\n", s.error().message);
      return 1;
    }
    slowest_ms = std::max(slowest_ms,
                          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count());
    if (t + 1 == 86400 || t + 1 == 2 * 86400 || (t + 1) % (7 * 86400) == 0)
      fmt::print("  day {:3}: {:8.1f} MB (+{:.1f} MB log)\n", (t + 1) / 86400, size_mb(config.path),
                 size_mb(config.path + "-wal"));
  }
  const double spent_s = cpu_s() - begin - tick_s * static_cast<double>(seconds);
  const long rss_kib = status_kib("VmRSS"), peak_kib = status_kib("VmHWM");
  fmt::print("{} series, {} days at 1 Hz: {:.1f} MB on disk (+{:.1f} MB log)\n", devices.size() + running.size(), days,
             size_mb(config.path), size_mb(config.path + "-wal"));
  fmt::print("append + flush + pack: {:.3f} ms CPU a second of watching, slowest call {:.1f} ms\n",
             1e3 * spent_s / static_cast<double>(seconds), slowest_ms);
  fmt::print("memory: {:.2f} MiB resident on top of {:.2f} (peak {:.2f})\n",
             static_cast<double>(rss_kib - rss_before_kib) / 1024, static_cast<double>(rss_before_kib) / 1024,
             static_cast<double>(peak_kib - rss_before_kib) / 1024);
  for (const std::string& notice : (*store)->take_notices()) fmt::print("notice: {}\n", notice);
  store->reset();
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) (void)unlink((config.path + suffix).c_str());
  return 0;
}

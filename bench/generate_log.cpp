// Writes an nvidia-smi log as `nvidia-smi --query-gpu=... --format=csv -l 1` would, to measure on.
//
//   generate_log ROWS [GPUS] [SEED] > log.csv
//
// One row a GPU a second. GPU 0 leaks, 1 warms up and stays, 2 is a sawtooth, 3 a staircase that ends, 4 idles with
// noise, 5 leaks slowly under a sawtooth, 6 is bursty, 7 follows day and night; further GPUs begin again.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <random>
#include <string>

namespace {

constexpr double kCapacityMib = 81920;
constexpr double kPi = 3.14159265358979323846;

/// MiB used on GPU `gpu` `t` seconds after the log's begin, of `span` seconds in all; `noise` is standard normal.
double used_mib(int gpu, double t, double span, double noise) {
  const double share = t / span;
  switch (gpu % 8) {
    case 0:
      return 12000 + 60000 * share + 40 * noise;
    case 1:
      return 64000 * (1 - std::exp(-t / 900)) + 20 * noise;
    case 2:
      return 30000 + 20000 * std::fmod(t, 600) / 600 + 100 * noise;
    case 3:
      return 20000 + 6000 * std::min(4.0, std::floor(t / 1800));
    case 4:
      return 450 + 15 * noise;
    case 5:
      return 20000 + 25000 * share + 15000 * std::fmod(t, 420) / 420 + 50 * noise;
    case 6:
      return 9000 + (std::fmod(t, 97) < 9 ? 30000 : 0) + 200 * noise;
    default:
      return 40000 + 20000 * std::sin(2 * kPi * t / 86400) + 300 * noise;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: generate_log ROWS [GPUS] [SEED] > log.csv\n", stderr);
    return 2;
  }
  const long long rows = std::atoll(argv[1]);
  const int gpus = argc > 2 ? std::atoi(argv[2]) : 8;
  std::mt19937_64 random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  std::normal_distribution<double> normal;
  const double span = std::max(1.0, static_cast<double>(rows) / gpus);

  fmt::memory_buffer out;
  const auto flush = [&out] {
    std::fwrite(out.data(), 1, out.size(), stdout);
    out.clear();
  };
  fmt::format_to(std::back_inserter(out),
                 "timestamp, index, name, uuid, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n");
  constexpr std::time_t kBegin = 1767225600;  // 2026-01-01 00:00:00 UTC
  for (long long row = 0; row < rows; ++row) {
    const long long second = row / gpus;
    const int gpu = static_cast<int>(row % gpus);
    const std::time_t at = kBegin + second;
    std::tm utc{};
    gmtime_r(&at, &utc);
    const double used = used_mib(gpu, static_cast<double>(second), span, normal(random));
    fmt::format_to(std::back_inserter(out),
                   "{:04}/{:02}/{:02} {:02}:{:02}:{:02}.{:03}, {}, NVIDIA A100-SXM4-80GB, "
                   "GPU-5f0d2c1e-7a3b-4c2d-9e8f-00000000{:04x}, {} MiB, {:.0f} MiB, {} %\n",
                   utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, 100 + gpu, gpu,
                   gpu, static_cast<long long>(std::min(kCapacityMib, std::max(0.0, used))), kCapacityMib,
                   40 + row % 60);
    if (out.size() > 1 << 20) flush();
  }
  flush();
  return 0;
}

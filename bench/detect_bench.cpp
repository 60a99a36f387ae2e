// Cost of the detectors: nanoseconds a sample amortised (target for the judge: 300) and bytes of state a series (20
// KiB). State is what is really allocated: operator new and delete are replaced here by ones that count.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "detect/detector.hpp"

namespace {
std::int64_t live_bytes = 0;  // by malloc's own word, rounding included; the benchmarks run on one thread
}

// Not inlined: the compiler would warn that malloc and delete do not match.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  live_bytes += static_cast<std::int64_t>(malloc_usable_size(block));
  return block;
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  if (block != nullptr) live_bytes -= static_cast<std::int64_t>(malloc_usable_size(block));
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}

namespace vramtrack {
namespace {

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kCapacityBytes = 80.0 * 1024 * kMib;
constexpr int kSamples = 250'000;  // one a second: 69 hours

struct Shape {
  std::string_view name;
  double (*used_mib)(double t, double noise);
};

constexpr Shape kShapes[] = {
    {"steady", [](double, double noise) { return 20000 + 15 * noise; }},
    {"leak", [](double t, double noise) { return 8000 + 0.2 * t + 20 * noise; }},
    {"warm_up", [](double t, double noise) { return 60000 * (1 - std::exp(-t / 900)) + 20 * noise; }},
    {"sawtooth", [](double t, double noise) { return 30000 + 20000 * std::fmod(t, 600) / 600 + 100 * noise; }},
    {"rising_sawtooth", [](double t, double) { return 20000 + 0.1 * t + 15000 * std::fmod(t, 420) / 420; }},
    {"staircase", [](double t, double) { return 10000 + 512 * std::floor(t / 1800); }},
    {"bursty", [](double t, double noise) { return 9000 + (std::fmod(t, 97) < 9 ? 30000.0 : 0.0) + 200 * noise; }},
    {"serving", [](double t, double) { return 12000 + 700 * std::fmod(std::floor(t / 60) * 7, 11); }},
    {"diurnal", [](double t, double noise) { return 40000 + 20000 * std::sin(t / 13751) + 300 * noise; }},
};

std::vector<double> make_series(const Shape& shape) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> used(kSamples);
  for (int i = 0; i < kSamples; ++i) {
    // As drivers report it: whole MiB.
    used[static_cast<std::size_t>(i)] = std::floor(shape.used_mib(i, normal(random))) * kMib;
  }
  return used;
}

/// CPU seconds of this thread: other programs on the machine do not count.
double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// `period_s`: of the samples; the shape is stretched along with it.
void detect(benchmark::State& state, const DetectorInfo& info, const Shape& shape, int period_s) {
  const std::vector<double> used = make_series(shape);
  const DetectionConfig config;
  std::int64_t state_bytes = 0;
  int alerts = 0;
  const double begun_s = cpu_s();
  for (auto _ : state) {
    const std::int64_t before = live_bytes;
    const auto detector = info.make(config, kSecondsAndBytes);
    detector->set_limit(kCapacityBytes);
    Timestamp time{};
    bool was_alerting = false;
    for (const double bytes : used) {
      time += std::chrono::seconds(period_s);
      detector->observe(time, bytes);
      const bool alerting = detector->alerting();
      alerts += alerting && !was_alerting ? 1 : 0;
      was_alerting = alerting;
    }
    state_bytes = live_bytes - before;
    benchmark::DoNotOptimize(detector->finding().confidence);
  }
  state.SetItemsProcessed(state.iterations() * kSamples);
  state.counters["ns_per_sample"] = (cpu_s() - begun_s) * 1e9 / (static_cast<double>(state.iterations()) * kSamples);
  state.counters["state_bytes"] = static_cast<double>(state_bytes);
  state.counters["alerts"] = static_cast<double>(alerts) / static_cast<double>(state.iterations());
}

/// As a watch of 8 GPUs and 64 processes feeds them: a tick at a time, so that each detector's state has left the
/// fastest cache when its next sample comes. Every series begins elsewhere in the shape.
void detect_interleaved(benchmark::State& state, const DetectorInfo& info, const Shape& shape) {
  constexpr std::size_t kSeries = 72;
  constexpr std::size_t kTicks = 20'000;
  const std::vector<double> used = make_series(shape);
  const DetectionConfig config;
  double observing_s = 0;
  for (auto _ : state) {
    std::vector<std::unique_ptr<Detector>> watched;
    for (std::size_t i = 0; i < kSeries; ++i) {
      watched.push_back(info.make(config, kSecondsAndBytes));
      watched.back()->set_limit(kCapacityBytes);
    }
    const double begun_s = cpu_s();
    int alerting = 0;
    for (std::size_t tick = 0; tick < kTicks; ++tick) {
      const Timestamp time{std::chrono::seconds(tick)};
      for (std::size_t i = 0; i < kSeries; ++i) {
        watched[i]->observe(time, used[tick + i * 3000]);
        alerting += watched[i]->alerting() ? 1 : 0;
      }
    }
    observing_s += cpu_s() - begun_s;
    benchmark::DoNotOptimize(alerting);
  }
  state.counters["ns_per_sample"] =
      observing_s * 1e9 / (static_cast<double>(state.iterations()) * static_cast<double>(kSeries * kTicks));
}

const bool registered = [] {
  for (const DetectorInfo* info : detectors()) {
    for (const Shape& shape : kShapes) {
      const std::string name = std::string(info->name) + "/" + std::string(shape.name);
      benchmark::RegisterBenchmark(name.c_str(), [info, &shape](benchmark::State& state) {
        detect(state, *info, shape, 1);
      })->Unit(benchmark::kMillisecond);
      for (const int period_s : {10, 60})
        benchmark::RegisterBenchmark(
            (name + "/every_" + std::to_string(period_s) + "_s").c_str(),
            [info, &shape, period_s](benchmark::State& state) { detect(state, *info, shape, period_s); })
            ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark((name + "/72_series").c_str(), [info, &shape](benchmark::State& state) {
        detect_interleaved(state, *info, shape);
      })->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace vramtrack

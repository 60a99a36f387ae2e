// Cost of the comings and goings of processes beside many others: a start and an end must cost the same, however many
// series the engine holds.
#include <benchmark/benchmark.h>

#include <string>

#include "engine/engine.hpp"

namespace vramtrack {
namespace {

constexpr std::uint32_t kDevices = 8;
constexpr std::size_t kEndedKept = 64;

std::string device_of(std::uint32_t pid) {
  return "GPU-" + std::to_string(pid % kDevices);
}

/// A process starts (its series is new, the catalog changes), gives one sample and ends; `state.range(0)` others live.
void start_and_end(benchmark::State& state) {
  Catalog catalog;
  Engine engine({}, catalog, kEndedKept);
  const auto others = static_cast<std::uint32_t>(state.range(0));
  Batch batch;
  for (std::uint32_t pid = 1; pid <= others; ++pid) {
    ProcessInfo process;
    process.pid = pid;
    catalog.describe(process);
    batch.samples.push_back({Timestamp{}, catalog.intern({Metric::process_used, device_of(pid), pid, 0}), 1U << 20});
  }
  engine.ingest(batch);
  std::uint32_t pid = others;
  for (auto _ : state) {
    ++pid;
    const Timestamp now{from_seconds(pid - others)};
    ProcessInfo process;
    process.pid = pid;
    catalog.describe(process);
    Event end;
    end.time = now;
    end.kind = Event::Kind::process_ended;
    end.pid = pid;
    batch.clear();
    batch.samples.push_back({now, catalog.intern({Metric::process_used, device_of(pid), pid, 0}), 1U << 20});
    batch.events.push_back(end);
    engine.ingest(batch);
  }
}
BENCHMARK(start_and_end)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace vramtrack

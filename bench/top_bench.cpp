// CPU of one update of `vramtrack top`: the View of 8 GPUs with 64 processes, its history, the screen's cells.
//
//   build/bench/top_bench
//
// The engine has watched an hour at 1 Hz in which one process leaks. What curses sends to the terminal is not in it
// (some tenths of a millisecond: only differences go out).
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "core/config.hpp"
#include "core/units.hpp"
#include "engine/engine.hpp"
#include "top/draw.hpp"
#include "top/timeline.hpp"

namespace {

using namespace vramtrack;

constexpr int kGpus = 8;
constexpr int kProcesses = 64;
constexpr int kSeconds = 3600;

struct Watched {
  Watched() : engine(Config{}, catalog) {
    std::vector<SeriesId> gpus;
    std::vector<SeriesId> processes;
    for (int g = 0; g < kGpus; ++g) {
      DeviceInfo device;
      device.id = "GPU-" + std::to_string(g);
      device.index = g;
      device.name = "NVIDIA H100 80GB HBM3";
      device.capacity_bytes = 80 * 1024 * kBytesPerMiB;
      catalog.describe(device);
      gpus.push_back(catalog.intern({Metric::device_used, device.id, 0, 0}));
    }
    for (int p = 0; p < kProcesses; ++p) {
      ProcessInfo process;
      process.pid = static_cast<std::uint32_t>(4000 + p);
      process.start_ticks = 1;
      process.user = "ada";
      process.command = "python train.py --rank " + std::to_string(p);
      process.framework = "PyTorch";
      catalog.describe(process);
      processes.push_back(
          catalog.intern({Metric::process_used, "GPU-" + std::to_string(p % kGpus), process.pid, process.start_ticks}));
    }
    Batch batch;
    for (int s = 0; s < kSeconds; ++s) {
      batch.clear();
      const Timestamp now{std::chrono::seconds{1767600000 + s}};
      for (int g = 0; g < kGpus; ++g)
        batch.samples.push_back({now, gpus[static_cast<std::size_t>(g)], used(s, g) + 8 * 2048 * kBytesPerMiB});
      for (int p = 0; p < kProcesses; ++p)
        batch.samples.push_back(
            {now, processes[static_cast<std::size_t>(p)], (p < kGpus ? used(s, p) : 0) + 2048 * kBytesPerMiB});
      engine.ingest(batch);
      engine.finish();
      timeline.take(batch, catalog);
    }
    model.source = "bench";
    model.interval_s = 1;
    model.feed.history = [this](const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
      const auto* points = timeline.points(key);
      return points == nullptr ? std::vector<top::Point>() : top::resample(*points, from, to, most);
    };
    model.view = engine.view();
  }

  /// A saw of 64 MiB on every GPU; GPU 2 leaks 120 MiB a minute.
  static std::uint64_t used(int s, int g) {
    return static_cast<std::uint64_t>(s % 40) * 64 * kBytesPerMiB / 40 +
           (g == 2 ? static_cast<std::uint64_t>(s) * 2 * kBytesPerMiB : 0);
  }

  Catalog catalog;
  Engine engine;
  top::Timeline timeline;
  top::Model model;
};

Watched& watched() {
  static Watched instance;
  return instance;
}

void update(benchmark::State& state, top::Page page, int width, int height) {
  Watched& w = watched();
  w.model.ui.page = page;
  w.model.ui.device_id = "GPU-2";
  w.model.ui.detail = {Metric::device_used, "GPU-2", 0, 0};
  for (auto _ : state) {
    w.model.view = w.engine.view();
    top::Screen screen(width, height);
    top::draw(screen, w.model);
    benchmark::DoNotOptimize(screen.at(0, 0));
  }
}

void view_only(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(watched().engine.view());
}

BENCHMARK(view_only)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(update, overview_80x24, top::Page::overview, 80, 24)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(update, overview_200x50, top::Page::overview, 200, 50)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(update, predict_200x50, top::Page::predict, 200, 50)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(update, detail_200x50, top::Page::detail, 200, 50)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(update, alerts_200x50, top::Page::alerts, 200, 50)->Unit(benchmark::kMillisecond);

}  // namespace
